#pragma once

#include "mlxcel/loading/registry.h"

namespace mlxcel {

/// How a model type is loaded; looks only at the registry.
struct ModelLoadPolicy {
  ModelType type;
  DirectoryRoute directory_route;
  WeightRoute weight_route;
  std::string_view adapter_refusal;
};

/// Throws Error(unsupported) if the type is only recognised.
ModelLoadPolicy model_load_policy(ModelType type);

}  // namespace mlxcel
