#pragma once

#include <cstdint>

#include "mlxcel/weights/convert/gguf/gguf.h"

namespace mlxcel::convert {

/// Elements that share a scale and a bias in what is written.
constexpr int64_t kGroup = 32;

/// 32 consecutive elements of a row: w = scale * code + bias.
struct AffineGroup {
  float scale;
  float bias;
  uint8_t codes[kGroup];
};

/// Bits per code of the affine form of a quantised type, 0 for F32, F16, BF16.
int affine_bits(GgmlType type);

/// True for the types whose blocks are affine groups of 32 themselves. Only
/// Q6_K isn't: its scales cover 16 elements.
bool is_affine(GgmlType type);

/// One block of an affine type as block_layout(type).elements / 32 groups.
/// scale * code + bias in float32 is what ggml's reference decoder gives
/// (ggml-quants.c, dequantize_row_*): the products are exact.
void decode_groups(GgmlType type, const std::byte* block, AffineGroup* groups);

/// The 32 values of a group.
void expand(const AffineGroup& group, float* to);

/// `count` elements in whole blocks as float32, equal to ggml's decoder.
void dequantize(
    GgmlType type, const std::byte* blocks, int64_t count, float* to
);

/// The nearest affine group with 8-bit codes; scale and bias are values of
/// float16 if `half`, so that the codes suit what is stored.
void fit_group(const float* values, bool half, AffineGroup& group);

}  // namespace mlxcel::convert
