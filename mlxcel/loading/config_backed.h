#pragma once

#include "mlxcel/loading/load_request.h"
#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// The loader of most families: config → spec, weights → tensors, build. No
/// family needs a branch here; the registry's entry carries the code.
std::unique_ptr<LanguageModel> load_config_backed_from_dir(
    const LoadRequest& request
);

/// The same from tensors that are in memory already (fused adapters).
std::unique_ptr<LanguageModel> load_config_backed_from_weights(
    const LoadRequest& request, WeightMap weights
);

}  // namespace mlxcel
