#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

class Json;

/// The number of experts that the config declares (num_experts,
/// num_local_experts, n_routed_experts), empty if it does not.
std::optional<int64_t> declared_experts(const Json& config);

/// Gathers single experts by their names; for those who make a map of very
/// many tensors, so that these need not be in it one by one.
class ExpertCollector {
 public:
  ExpertCollector();
  ~ExpertCollector();
  ExpertCollector(const ExpertCollector&) = delete;
  ExpertCollector& operator=(const ExpertCollector&) = delete;

  /// Whether the name is that of one expert, `<root>.experts.<i>.<plane>`.
  static bool is_expert(std::string_view name);
  /// Takes the weight if the name is one; false, and the weight stays, if not.
  bool take(std::string_view name, Weight& weight);
  /// Adds the stacks to the map and gives their number. Throws as
  /// stack_experts().
  int64_t finish(WeightMap& weights, std::optional<int64_t> declared);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Brings the experts of a layer to one form, `<root>.switch_mlp.<proj>.
/// <plane>` [E, ...] (weights-and-quantization.md 16). Read are
/// - `<root>.experts.<i>.<proj>.<plane>`, stacked from 0 on without a copy,
/// - `<root>.experts.gate_up_proj` [E, 2 I, H], gate first, which is split, and
///   `<root>.experts.down_proj` [E, H, I], each also with `.weight`.
/// Gives the number of stacks made; a second call finds none.
/// Throws Error(invalid_input) naming the root: an expert that is missing
/// (with how many there are of how many), planes that differ from expert to
/// expert, an odd number of rows to split.
int64_t stack_experts(WeightMap& weights, std::optional<int64_t> declared);

}  // namespace mlxcel
