#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mlxcel {

/// Codes that pack_codes() takes at a time; groups are multiples of it.
constexpr int kPackedCodes = 32;

/// Packs 32 codes of 2, 3, 4, 5, 6 or 8 bits as one little-endian bit stream:
/// 4 * bits bytes.
void pack_codes(const uint8_t* codes, int bits, std::byte* to);
/// The codes of `count` elements, a multiple of 8, of 1 to 8 bits.
void unpack_codes(
    const std::byte* packed, int bits, int64_t count, uint8_t* codes
);

/// Affine quantisation in MLX's arithmetic (quantization.h,
/// quantize_affine_into): `plain`, if not null, gets every code as a byte.
/// A range that float32 doesn't hold gives a scale that isn't finite.
void quantize_affine_groups(
    std::span<const float> values,
    int bits,
    int group,
    std::byte* codes,
    float* scales,
    float* biases,
    uint8_t* plain
);

}  // namespace mlxcel
