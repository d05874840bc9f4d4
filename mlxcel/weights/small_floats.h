#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "mlxcel/weights/dtype.h"

namespace mlxcel {

/// Values of all codes. OCP 8-bit Floating Point 1.0 (E4M3: no infinity, all
/// ones is NaN; E5M2: IEEE), OCP Microscaling Formats 1.0 (E2M1; E8M0: powers
/// of two, all ones is NaN).
const std::array<float, 16>& e2m1_values();
const std::array<float, 256>& e4m3_values();
const std::array<float, 256>& e5m2_values();
const std::array<float, 256>& e8m0_values();

/// The nearest code, ties to even; what is too large becomes the largest. A NaN
/// stays one (MLX makes it the largest).
uint8_t to_e4m3(float value);
/// The nearest code, ties towards zero, which has no sign: what MLX's CPU
/// backend chooses. What is too large becomes the largest.
uint8_t to_e2m1(float value);

/// Groups of 32 (mxfp4, mxfp8) or 16 (nvfp4) values as MLX's CPU backend
/// quantises them: the scale is that of the largest magnitude over 6 or 448,
/// for E8M0 rounded up to a power of two. MLX divides in the type of the
/// values, `type`: f32, f16 or bf16. Codes [values * bits / 8] bytes, scales
/// [groups]. Where MLX's E8M0 byte wraps around, below 2^-127, it stays 0.
void quantize_mxfp4(
    std::span<const float> values,
    std::byte* codes,
    std::byte* scales,
    DType type = DType::f32
);
void quantize_mxfp8(
    std::span<const float> values,
    std::byte* codes,
    std::byte* scales,
    DType type = DType::f32
);
void quantize_nvfp4(
    std::span<const float> values,
    std::byte* codes,
    std::byte* scales,
    DType type = DType::f32
);

}  // namespace mlxcel
