#include "mlxcel/weights/convert/gguf/gguf_dequant.h"

#include <algorithm>
#include <cmath>

#include "mlxcel/core/numbers.h"

namespace mlxcel::convert {

namespace {

// The byte and bit layouts below are those of ggml-common.h (block_q4_0 ...
// block_q6_K) and ggml-quants.c (get_scale_min_k4, dequantize_row_*).

uint8_t byte_at(const std::byte* p, int64_t i) {
  return std::to_integer<uint8_t>(p[i]);
}

float half_at(const std::byte* p) {
  return f16_to_float(load_le<uint16_t>(p));
}

// 16 bytes: the low nibbles are elements 0-15, the high ones 16-31.
void split_nibbles(const std::byte* from, uint8_t* codes) {
  for (int i = 0; i < 16; ++i) {
    uint8_t pair = byte_at(from, i);
    codes[i] = pair & 0x0f;
    codes[i + 16] = pair >> 4;
  }
}

// Bit i is the fifth bit of element i.
void add_fifth_bits(const std::byte* from, uint8_t* codes) {
  auto bits = load_le<uint32_t>(from);
  for (int i = 0; i < kGroup; ++i) {
    codes[i] |= static_cast<uint8_t>(((bits >> i) & 1) << 4);
  }
}

// 6-bit scale and minimum of sub-block j of 8, packed in 12 bytes.
void scale_and_min(const std::byte* packed, int j, int& scale, int& min) {
  if (j < 4) {
    scale = byte_at(packed, j) & 63;
    min = byte_at(packed, j + 4) & 63;
  } else {
    scale = (byte_at(packed, j + 4) & 0x0f) | (byte_at(packed, j - 4) >> 6)
                                                  << 4;
    min = (byte_at(packed, j + 4) >> 4) | (byte_at(packed, j) >> 6) << 4;
  }
}

// Q4_K and Q5_K: d, dmin, 12 bytes of scales, [32 bytes of fifth bits,] 128
// bytes of nibbles. 32 bytes of nibbles hold two sub-blocks of 32.
void decode_k(const std::byte* block, bool fifth, AffineGroup* groups) {
  float d = half_at(block);
  float dmin = half_at(block + 2);
  const std::byte* packed = block + 4;
  const std::byte* high = block + 16;
  const std::byte* nibbles = block + (fifth ? 48 : 16);
  for (int j = 0; j < 8; ++j) {
    AffineGroup& group = groups[j];
    int scale;
    int min;
    scale_and_min(packed, j, scale, min);
    group.scale = d * static_cast<float>(scale);
    group.bias = -(dmin * static_cast<float>(min));
    const std::byte* pairs = nibbles + (j / 2) * 32;
    int shift = (j % 2) * 4;
    for (int i = 0; i < kGroup; ++i) {
      int code = (byte_at(pairs, i) >> shift) & 0x0f;
      if (fifth) {
        code |= ((byte_at(high, i) >> j) & 1) << 4;
      }
      group.codes[i] = static_cast<uint8_t>(code);
    }
  }
}

// Q6_K: 128 bytes of low nibbles, 64 of high bit pairs, 16 signed scales, d.
void dequantize_q6_k(const std::byte* block, float* to) {
  float d = half_at(block + 208);
  for (int half = 0; half < 2; ++half) {
    const std::byte* low = block + half * 64;
    const std::byte* high = block + 128 + half * 32;
    const std::byte* scales = block + 192 + half * 8;
    for (int quarter = 0; quarter < 4; ++quarter) {
      for (int i = 0; i < 32; ++i) {
        int nibble = byte_at(low, i + (quarter % 2) * 32) >> (quarter / 2) * 4;
        int pair = byte_at(high, i) >> (quarter * 2);
        int code = (nibble & 0x0f) | (pair & 3) << 4;
        auto scale = static_cast<int8_t>(byte_at(scales, quarter * 2 + i / 16));
        to[half * 128 + quarter * 32 + i] =
            (d * static_cast<float>(scale)) * static_cast<float>(code - 32);
      }
    }
  }
}

}  // namespace

void expand(const AffineGroup& group, float* to) {
  for (int i = 0; i < kGroup; ++i) {
    to[i] = group.scale * static_cast<float>(group.codes[i]) + group.bias;
  }
}

int affine_bits(GgmlType type) {
  switch (type) {
    case GgmlType::q4_0:
    case GgmlType::q4_1:
    case GgmlType::q4_k:
      return 4;
    case GgmlType::q5_0:
    case GgmlType::q5_1:
    case GgmlType::q5_k:
      return 5;
    case GgmlType::q8_0:
    case GgmlType::q6_k:
      return 8;
    default:
      return 0;
  }
}

bool is_affine(GgmlType type) {
  return affine_bits(type) != 0 && type != GgmlType::q6_k;
}

void decode_groups(GgmlType type, const std::byte* block, AffineGroup* groups) {
  if (type == GgmlType::q4_k || type == GgmlType::q5_k) {
    decode_k(block, type == GgmlType::q5_k, groups);
    return;
  }
  AffineGroup& group = *groups;
  group.scale = half_at(block);
  switch (type) {
    case GgmlType::q4_0:
      group.bias = -8 * group.scale;
      split_nibbles(block + 2, group.codes);
      break;
    case GgmlType::q4_1:
      group.bias = half_at(block + 2);
      split_nibbles(block + 4, group.codes);
      break;
    case GgmlType::q5_0:
      group.bias = -16 * group.scale;
      split_nibbles(block + 6, group.codes);
      add_fifth_bits(block + 2, group.codes);
      break;
    case GgmlType::q5_1:
      group.bias = half_at(block + 2);
      split_nibbles(block + 8, group.codes);
      add_fifth_bits(block + 4, group.codes);
      break;
    case GgmlType::q8_0:
      // Signed bytes; flipping the top bit adds 128.
      group.bias = -128 * group.scale;
      for (int i = 0; i < kGroup; ++i) {
        group.codes[i] = byte_at(block, 2 + i) ^ 0x80;
      }
      break;
    default:
      fail(ErrorCode::internal, "[gguf] decode_groups: a type without groups");
  }
}

void dequantize(
    GgmlType type, const std::byte* blocks, int64_t count, float* to
) {
  const BlockLayout& layout = block_layout(type);
  for (int64_t i = 0; i < count; i += layout.elements) {
    const std::byte* block = blocks + i / layout.elements * layout.bytes;
    switch (type) {
      case GgmlType::f32:
        to[i] = load_le<float>(block);
        break;
      case GgmlType::f16:
        to[i] = half_at(block);
        break;
      case GgmlType::bf16:
        to[i] = bf16_to_float(load_le<uint16_t>(block));
        break;
      case GgmlType::q6_k:
        dequantize_q6_k(block, to + i);
        break;
      default: {
        AffineGroup groups[8];
        decode_groups(type, block, groups);
        for (int64_t g = 0; g < layout.elements / kGroup; ++g) {
          expand(groups[g], to + i + g * kGroup);
        }
      }
    }
  }
}

void fit_group(const float* values, bool half, AffineGroup& group) {
  auto [low, high] = std::minmax_element(values, values + kGroup);
  group.bias = *low;
  group.scale = (*high - *low) / 255;
  if (half) {
    group.bias = f16_to_float(float_to_f16(group.bias));
    group.scale = f16_to_float(float_to_f16(group.scale));
  }
  float inverse = group.scale > 0 ? 1 / group.scale : 0;
  for (int i = 0; i < kGroup; ++i) {
    float code = std::nearbyint((values[i] - group.bias) * inverse);
    // A NaN fails the comparison; the caller refuses what isn't finite.
    group.codes[i] =
        code > 0 ? static_cast<uint8_t>(std::min(code, 255.0f)) : 0;
  }
}

}  // namespace mlxcel::convert
