#pragma once

#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// BitNet b1.58: `p.weight` U8 [rows / 4, cols], whose bits 2i and 2i + 1 of
/// row r hold row r + i * rows / 4, a value plus one; `p.weight_scale` [1]
/// multiplies (linear_class autobitlinear) or divides. Becomes affine 2-bit
/// planes with a float32 scale s and the bias -s, which are the same values;
/// groups of 128, 64 or 32, as divides the columns. Planes are made when they
/// are first read. Gives the number of matrices.
/// Throws Error naming the tensor: type, rank, a scale that is no single
/// number, columns that are no multiple of 32.
int64_t convert_bitnet(WeightMap& weights, bool scale_multiplies);

}  // namespace mlxcel
