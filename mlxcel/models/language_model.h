#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "mlxcel/backend/backend.h"
#include "mlxcel/core/json.h"
#include "mlxcel/weights/quantization.h"
#include "mlxcel/weights/tensor_table.h"
#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// A model that gives logits for the next token. What else it can do (take
/// images, draft heads) is a capability asked for by type, LoadedModel::as().
class LanguageModel {
 public:
  virtual ~LanguageModel() = default;
  virtual backend::Backend& backend() const = 0;
  /// What a sequence keeps, layer by layer.
  virtual backend::StateLayout state_layout() const = 0;
  /// Entries of a row of logits.
  virtual int64_t vocabulary() const = 0;
  /// Runs the step that the backend has begun. [R, V]
  virtual backend::Tensor forward() = 0;
};

/// What a builder gets. The weights are sanitised, and lm_head is restored
/// where it is tied.
struct BuildInput {
  Json config;  // of the text model: text_config where there is one
  const WeightMap& weights;
  QuantConfig quantization;
  std::shared_ptr<backend::Backend> backend;
};

/// What the registry knows of a family's code.
struct Family {
  /// The family's tensors for a config: one table for binding, errors,
  /// estimates and synthetic checkpoints.
  TensorTable (*tensors)(const Json& config);
  /// Routes `config_backed` and `llama_family`.
  std::unique_ptr<LanguageModel> (*build)(const BuildInput& input) = nullptr;
  /// Routes `nonstandard` and `vlm`: a loader of the family's own.
  std::unique_ptr<LanguageModel> (*load_directory
  )(const std::string& directory,
    const Json& config,
    std::shared_ptr<backend::Backend> backend) = nullptr;
  /// Route `special`: from its own copy of weights that are in memory.
  std::unique_ptr<LanguageModel> (*load_weights
  )(const Json& config,
    WeightMap weights,
    std::shared_ptr<backend::Backend> backend) = nullptr;
};

}  // namespace mlxcel
