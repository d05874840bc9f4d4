#pragma once

#include <cstdint>
#include <string>

#include "mlx/mlx.h"
#include "mlxcel/weights/weight_map.h"

namespace mlxcel::backend::graph {

namespace mx = mlx::core;

/// The MLX type of a plane: floats as they are, U32 words, scale bytes.
/// Throws Error(unsupported) naming `name` for anything else.
mx::Dtype plane_dtype(DType dtype, const std::string& name);

/// A dimension as MLX counts it. Throws Error(unsupported) beyond 31 bits.
mx::ShapeElem dimension(int64_t size, const std::string& name);

/// True if arrays can read a mapped file in place on this build of MLX: its
/// allocator keeps one size word before the data, and a borrowed array
/// computes. Checked once.
bool can_borrow();

/// The weight as an MLX array of its own type: in place if can_borrow() and
/// the bytes are aligned to the element, otherwise copied, to the device where
/// that has memory of its own (device_copy.h). Keeps the source alive.
mx::array plane(const Weight& weight, const std::string& name);

}  // namespace mlxcel::backend::graph
