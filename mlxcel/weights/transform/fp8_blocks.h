#pragma once

#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// FP8 of DeepSeek and Qwen: `n.weight` E4M3 [R, C] and `n.weight_scale_inv`
/// [ceil(R / 128), ceil(C / 128)], which multiplies: w[r, c] =
/// e4m3(weight[r, c]) * scale_inv[r / 128, c / 128]. Each pair becomes mxfp8
/// planes, `n.weight` [R, C / 4] U32 and `n.scales` [R, C / 32] U8, when they
/// are first read. Other tensors stay. Gives the number of pairs; a second
/// call finds none.
/// Throws Error(invalid_input) naming the tensor: rank, type, columns that
/// are no multiple of 32, a sidecar of another shape or without weight.
int64_t convert_fp8_blocks(WeightMap& weights);

}  // namespace mlxcel
