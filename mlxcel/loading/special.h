#pragma once

#include "mlxcel/loading/load_request.h"
#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// Families that build from weights in memory only with their own copy and
/// their own sanitising. Reached when adapters were fused.
std::unique_ptr<LanguageModel> load_special_from_weights(
    const LoadRequest& request, WeightMap weights
);

}  // namespace mlxcel
