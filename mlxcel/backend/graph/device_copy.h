#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "mlx/mlx.h"

namespace mlxcel::backend::graph {

/// Memory of a discrete device and the way weights get there: one
/// implementation per build of MLX, chosen by CMake.
///
/// On CUDA the bytes go through four page-locked buffers of 64 MiB that are
/// used again and again, so that the copy of one to the device runs beside the
/// filling of the next (weights-and-quantization.md 6.1). Where page-locked
/// memory can't be had, which is one warning per process, or is not wanted
/// (MLXCEL_CUDA_PINNED_LOAD is 0, false, off or no), pageable memory is
/// copied from. Other builds have no such memory.

/// The bytes as an array in device memory, on their way there until
/// finish_device_copies(); empty where there is no device for them.
/// Throws std::exception if the device refuses.
std::optional<mlx::core::array> copy_to_device(
    std::span<const std::byte> bytes,
    const mlx::core::Shape& shape,
    mlx::core::Dtype dtype
);

/// Waits for all copies and frees the page-locked buffers. Throws
/// std::exception if one failed.
void finish_device_copies();

}  // namespace mlxcel::backend::graph
