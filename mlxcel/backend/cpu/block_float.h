#pragma once

#include <cstdint>

#include "mlxcel/backend/cpu/matmul_kernels.h"

/// Small floats as OCP Microscaling Formats 1.0, 5.3 and 5.4, has them. All
/// is static: each instruction set has its own copy.
namespace mlxcel::backend::cpu {

/// Twice the values of E2M1 codes: they are whole numbers.
constexpr int8_t kTwiceE2M1[16] = {
    0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// As whole numbers from 0 on, which is what activations of 8 bits are
/// multiplied with: a code is (u - kE2M1Zero) halves.
constexpr uint8_t kShiftedE2M1[16] = {
    12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
constexpr int kE2M1Zero = 12;

static inline float float_of_bits(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}

/// E4M3: bias 7, no infinity, all ones is NaN.
static inline float e4m3_value(uint8_t byte) {
  uint32_t magnitude = byte & 0x7fU;
  float value = magnitude == 0x7f ? float_of_bits(0x7fc00000U)
                : magnitude < 8
                    ? static_cast<float>(magnitude) * 0x1p-9F
                    : float_of_bits((magnitude << 20) + (120U << 23));
  return (byte & 0x80) != 0 ? -value : value;
}

/// A group's scale; E8M0: 2^(byte - 127), all ones is NaN.
static inline float block_scale(ScaleType type, uint8_t byte) {
  if (type == ScaleType::e4m3) {
    return e4m3_value(byte);
  }
  uint32_t bits = byte == 0      ? 0x00400000U
                  : byte == 0xff ? 0x7fc00000U
                                 : static_cast<uint32_t>(byte) << 23;
  return float_of_bits(bits);
}

/// What a code stands for before it is scaled.
static inline float block_value(Coding coding, uint8_t code) {
  return coding == Coding::e4m3
             ? e4m3_value(code)
             : 0.5F * static_cast<float>(kTwiceE2M1[code & 15]);
}

}  // namespace mlxcel::backend::cpu
