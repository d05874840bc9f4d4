#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/weights/quantization.h"
#include "mlxcel/weights/small_floats.h"

namespace mlxcel {

namespace {

std::span<const std::byte> checked_bytes(
    const Weight& plane, const std::string& name
) {
  std::span<const std::byte> bytes = plane.bytes();
  auto wanted = checked_mul(
      static_cast<uint64_t>(plane.elements()),
      static_cast<uint64_t>(dtype_size(plane.dtype))
  );
  if (!wanted || bytes.size() != *wanted) {
    fail(
        ErrorCode::internal,
        fmt::format(
            "[weights] {} {}: has {} bytes",
            name,
            plane.describe(),
            bytes.size()
        )
    );
  }
  return bytes;
}

// Code `index` of a row packed as one little-endian bit stream; for 1, 2, 4
// and 8 bits that is the same as packing words from the low end.
uint32_t code_at(const std::byte* row, int64_t index, int bits) {
  int64_t bit = index * bits;
  const std::byte* at = row + bit / 8;
  uint32_t low = static_cast<uint32_t>(at[0]);
  int shift = static_cast<int>(bit % 8);
  if (shift + bits > 8) {
    low |= static_cast<uint32_t>(at[1]) << 8;
  }
  return (low >> shift) & ((1u << bits) - 1);
}

std::vector<float> dequantize_affine(const LinearWeight& weight) {
  int bits = weight.format.bits;
  int64_t group = weight.format.group;
  int64_t groups = weight.cols / group;
  const std::byte* codes =
      checked_bytes(weight.codes, weight.path + ".weight").data();
  std::vector<float> scales = to_float(*weight.scales);
  std::vector<float> biases = to_float(*weight.biases);
  std::vector<float> values(static_cast<size_t>(weight.rows * weight.cols));
  for (int64_t r = 0; r < weight.rows; ++r) {
    const std::byte* row = codes + r * (weight.cols * bits / 8);
    float* out = values.data() + r * weight.cols;
    for (int64_t c = 0; c < weight.cols; ++c) {
      size_t g = static_cast<size_t>(r * groups + c / group);
      float code = static_cast<float>(code_at(row, c, bits));
      out[c] = scales[g] * code + biases[g];
    }
  }
  return values;
}

std::vector<float> dequantize_block_float(const LinearWeight& weight) {
  bool nibbles = weight.format.bits == 4;
  const auto& scale_table =
      weight.format.mode == QuantMode::nvfp4 ? e4m3_values() : e8m0_values();
  std::span<const float> table = e4m3_values();
  if (nibbles) {
    table = e2m1_values();
  }
  int64_t group = weight.format.group;
  int64_t groups = weight.cols / group;
  const std::byte* codes =
      checked_bytes(weight.codes, weight.path + ".weight").data();
  const std::byte* scales =
      checked_bytes(*weight.scales, weight.path + ".scales").data();
  std::vector<float> values(static_cast<size_t>(weight.rows * weight.cols));
  for (int64_t r = 0; r < weight.rows; ++r) {
    const std::byte* row = codes + r * (weight.cols * weight.format.bits / 8);
    float* out = values.data() + r * weight.cols;
    for (int64_t c = 0; c < weight.cols; ++c) {
      size_t scale = static_cast<size_t>(scales[r * groups + c / group]);
      uint32_t code = code_at(row, c, weight.format.bits);
      out[c] = table[code] * (scale_table[scale] * weight.global_scale);
    }
  }
  return values;
}

// One group: MLX's choice of scale and bias puts the edge of larger magnitude
// exactly on a code.
struct GroupScale {
  float scale;
  float bias;
};

GroupScale choose_scale(const float* values, int group, float levels) {
  float low = std::numeric_limits<float>::infinity();
  float high = -low;
  for (int i = 0; i < group; ++i) {
    high = values[i] > high ? values[i] : high;
    low = values[i] < low ? values[i] : low;
  }
  bool negative_edge = std::fabs(low) > std::fabs(high);
  float scale = std::max((high - low) / levels, 1e-7f);
  scale = negative_edge ? scale : -scale;
  float edge = negative_edge ? low : high;
  float steps = std::rint(edge / scale);
  if (steps == 0.0f) {
    return {scale, 0.0f};
  }
  return {edge / steps, edge};
}

// rint(x) clamped to [0, levels]; both orders give the same, and adding
// 1.5 * 2^23 rounds to nearest even in any vector unit.
inline uint32_t to_code(float x, float levels) {
  constexpr float kRound = 12582912.0f;
  x = x > 0.0f ? x : 0.0f;
  x = x < levels ? x : levels;
  return static_cast<uint32_t>(static_cast<int32_t>((x + kRound) - kRound));
}

// Packs 32 codes into `bits` words.
void pack32(const uint32_t* codes, int bits, uint32_t* words) {
  uint64_t window = 0;
  int filled = 0;
  for (int i = 0; i < 32; ++i) {
    window |= static_cast<uint64_t>(codes[i]) << filled;
    filled += bits;
    if (filled >= 32) {
      *words++ = static_cast<uint32_t>(window);
      window >>= 32;
      filled -= 32;
    }
  }
}

}  // namespace

std::vector<float> dequantize(const LinearWeight& weight) {
  switch (weight.format.mode) {
    case QuantMode::dense:
      return to_float(weight.codes);
    case QuantMode::affine:
      return dequantize_affine(weight);
    default:
      return dequantize_block_float(weight);
  }
}

void quantize_affine_into(
    std::span<const float> values,
    int bits,
    int group,
    uint32_t* codes,
    float* scales,
    float* biases
) {
  float levels = static_cast<float>((1 << bits) - 1);
  uint32_t block[32];
  for (size_t g = 0; g * group < values.size(); ++g) {
    const float* from = values.data() + g * group;
    auto [scale, bias] = choose_scale(from, group, levels);
    scales[g] = scale;
    biases[g] = bias;
    for (int i = 0; i < group; i += 32) {
      for (int j = 0; j < 32; ++j) {
        block[j] = to_code((from[i + j] - bias) / scale, levels);
      }
      pack32(block, bits, codes);
      codes += bits;
    }
  }
}

AffinePlanes quantize_affine(
    std::span<const float> values,
    int64_t rows,
    int64_t cols,
    int bits,
    int group
) {
  bool known_bits = bits >= 2 && bits <= 8 && bits != 7;
  if (!known_bits || group <= 0 || group % 32 != 0 || rows < 0 || cols < 0 ||
      cols % group != 0 ||
      values.size() / std::max<int64_t>(cols, 1) != static_cast<size_t>(rows)) {
    fail(
        ErrorCode::usage,
        fmt::format(
            "[weights] cannot quantise [{}, {}] to {} bits in groups of {}",
            rows,
            cols,
            bits,
            group
        )
    );
  }
  AffinePlanes planes;
  size_t groups = values.size() / static_cast<size_t>(group);
  planes.codes.resize(values.size() / 32 * static_cast<size_t>(bits));
  planes.scales.resize(groups);
  planes.biases.resize(groups);
  quantize_affine_into(
      values,
      bits,
      group,
      planes.codes.data(),
      planes.scales.data(),
      planes.biases.data()
  );
  return planes;
}

}  // namespace mlxcel
