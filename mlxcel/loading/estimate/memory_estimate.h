#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "mlxcel/backend/factory.h"
#include "mlxcel/core/json.h"
#include "mlxcel/loading/estimate/budget.h"
#include "mlxcel/loading/registry.h"
#include "mlxcel/weights/shards.h"

namespace mlxcel {

/// A number of bytes, or why there is none.
struct Figure {
  std::optional<uint64_t> bytes;
  /// What it is made of; the reason where it is unknown.
  std::string note;

  static Figure of(uint64_t bytes, std::string note = "") {
    return {bytes, std::move(note)};
  }
  static Figure unknown(std::string reason) {
    return {std::nullopt, std::move(reason)};
  }
};

/// What is to be run.
struct MemoryRequest {
  int64_t context = 0;  // tokens of a sequence, prompt and reply
  int64_t batch = 1;    // sequences at a time
  int64_t chunk = 512;  // tokens of a prompt that one step takes
  backend::BackendChoice backend;
};

/// Where the figure for the weights comes from.
enum class WeightsSource : uint8_t { none, safetensors_header, config };

struct MemoryEstimate {
  Figure weights;      // that stay resident
  Figure kv;           // state of all sequences at the full context
  Figure activations;  // values and scratch of the largest steps
  /// Bytes that one more token of one sequence keeps, in float16.
  std::optional<uint64_t> kv_per_token;
  WeightsSource source = WeightsSource::none;
  double factor = 1.0;  // headroom_factor()

  /// The sum of what is known.
  uint64_t known() const;
  /// Weights, state and activations; empty if one of them is unknown.
  std::optional<uint64_t> net() const;
  /// (factor - 1) * (weights + state), of what is known.
  uint64_t headroom() const;
  /// net() + headroom().
  std::optional<uint64_t> total() const;
  /// Whether the budget is enough; empty where it can't be said.
  std::optional<bool> fits(const Budget& budget) const;
};

/// What is known of a checkpoint without its tensors.
struct CheckpointOutline {
  const Descriptor& entry;
  const Json& config;
  /// Null where the weights are missing.
  const TensorListing* listing = nullptr;
  std::string missing;  // why there is no listing
  /// What prepared_hollow_weights() makes of the listing, where it is at hand.
  const WeightMap* prepared = nullptr;
  std::string refused;  // why a load will refuse the weights, "" if it won't
};

/// Weights, state and activations before any headroom. For a family that is
/// built they are what the backend allocates: its own decoder, bound to weights
/// without bytes, runs a step of a full prompt piece and a decode step at the
/// end of the context on the backend's meter. For another row the weights are
/// those of the headers, the state is what kv_need() says, and activations are
/// unknown. Reads no tensor.
/// Throws Error(usage) as make_meter() and headroom_factor() do.
MemoryEstimate estimate_memory(
    const CheckpointOutline& checkpoint, const MemoryRequest& request
);

/// The most tokens, at most request.context, with which the estimate stays in
/// the budget, in whole blocks; 0 if none do or it is unknown.
int64_t fitting_context(
    const CheckpointOutline& checkpoint,
    const MemoryRequest& request,
    const Budget& budget
);

/// What a table of the family promises where there are no weights: the
/// quantisation and dtype that the config declares. Empty for a family without
/// a table or a config that it refuses.
std::optional<TensorListing> listing_from_config(
    const Descriptor& entry, const Json& config
);

}  // namespace mlxcel
