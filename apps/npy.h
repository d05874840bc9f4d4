#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace mlxcel::apps {

/// Writes float32 [rows, cols] as a NumPy .npy file (format version 1.0).
void write_npy(
    const std::string& path,
    std::span<const float> values,
    int64_t rows,
    int64_t cols
);

}  // namespace mlxcel::apps
