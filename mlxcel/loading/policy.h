#pragma once

#include <string>

#include "mlxcel/loading/detect.h"
#include "mlxcel/loading/registry.h"

namespace mlxcel {

/// How a model type is loaded; looks only at the registry.
struct ModelLoadPolicy {
  ModelType type;
  DirectoryRoute directory_route;
  WeightRoute weight_route;
  /// Why adapters are refused; "" if they are not.
  std::string adapter_refusal;
};

ModelLoadPolicy model_load_policy(ModelType type);

/// Why adapters can't be fused into a type, one sentence naming the family; ""
/// if they can.
std::string adapter_refusal(ModelType type);

/// Throw Error(unsupported) with what the user should do instead:
/// unless the family's code is part of this build (`where` is the checkpoint),
void require_built(ModelType type, const std::string& where);
/// if the checkpoint does not generate (`directory` is for the message),
void require_generation(
    const Detection& detection, const std::string& directory
);
/// if adapters can't be fused,
void require_adapters(ModelType type);
/// if it can't be cut over several devices.
void require_tensor_parallel(ModelType type);

/// Throws Error(invalid_input) if config.json lacks a sub-config that the
/// family is built from, naming it.
void require_sub_configs(ModelType type, const Json& config);

/// What a request with images or video gets from a model without its tower.
std::string no_tower_message(const std::string& path);

}  // namespace mlxcel
