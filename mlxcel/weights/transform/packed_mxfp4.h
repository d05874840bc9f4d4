#pragma once

#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// compressed-tensors' mxfp4-pack-quantized: `p.weight_packed` U8
/// [rows, cols / 2], the even column in the low nibble, and `p.weight_scale`
/// E8M0 [rows, cols / 32] are MLX's planes under other names. Nothing is
/// copied. Gives the number of matrices.
/// Throws Error(invalid_input) naming the tensor: no scale, type, rank, rows
/// that differ, packed columns that are no multiple of 4.
int64_t rename_packed_mxfp4(WeightMap& weights);

}  // namespace mlxcel
