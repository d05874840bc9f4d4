#pragma once

#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// Dense tensors of types that no backend has: F64 becomes F32, F8_E4M3 and
/// F8_E5M2 become BF16, which holds all their values. Each is converted when
/// it is first read; one line of the log says how many. Scales of quantised
/// planes (`.scales` beside a U32 `.weight`) stay.
/// Throws Error(unsupported) naming an FP8 tensor that has a scale beside it
/// (`weight_scale`, `weight_scale_inv`, `scale_weight`): its values alone
/// would be wrong.
void convert_plain_types(WeightMap& weights);

}  // namespace mlxcel
