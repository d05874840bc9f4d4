#pragma once

#include <cstdint>
#include <vector>

#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// Rows [first, first + count) of the first axis, in place. Releasing a slice
/// does nothing: its neighbours lie in the same extent.
/// Precondition: 0 <= first, first + count <= shape[0].
Weight slice_rows(const Weight& weight, int64_t first, int64_t count);

/// Weights of one dtype and shape as one with an axis more in front. Its bytes
/// are put together when somebody asks for all of them; slices of it are
/// slices of the parts.
Weight stack_weights(std::vector<Weight> parts);

/// Element `index` of the first axis, which it loses, in place.
Weight element_of(const Weight& weight, int64_t index);

}  // namespace mlxcel
