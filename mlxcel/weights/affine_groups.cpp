#include "mlxcel/weights/affine_groups.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "mlxcel/core/error.h"
#include "mlxcel/weights/quantization.h"

namespace mlxcel {

namespace {

constexpr int kLanes = 16;
// Codes that end on a whole byte, whatever their width.
constexpr int kOctet = 8;

// One group: MLX's choice of scale and bias puts the edge of larger magnitude
// exactly on a code.
struct GroupScale {
  float scale;
  float bias;
};

// Lanes of their own let compilers vectorise; a NaN is passed over, as by
// MLX's std::min and std::max.
GroupScale choose_scale(const float* values, int group, float levels) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float low[kLanes];
  float high[kLanes];
  std::fill_n(low, kLanes, kInfinity);
  std::fill_n(high, kLanes, -kInfinity);
  for (int i = 0; i < group; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      float value = values[i + j];
      high[j] = value > high[j] ? value : high[j];
      low[j] = value < low[j] ? value : low[j];
    }
  }
  for (int j = 1; j < kLanes; ++j) {
    high[0] = high[j] > high[0] ? high[j] : high[0];
    low[0] = low[j] < low[0] ? low[j] : low[0];
  }
  bool negative_edge = std::fabs(low[0]) > std::fabs(high[0]);
  float scale = std::max((high[0] - low[0]) / levels, 1e-7f);
  scale = negative_edge ? scale : -scale;
  float edge = negative_edge ? low[0] : high[0];
  float steps = std::rint(edge / scale);
  if (steps == 0.0f) {
    return {scale, 0.0f};
  }
  return {edge / steps, edge};
}

// rint(x) clamped to [0, levels]; both orders give the same, and adding
// 1.5 * 2^23 rounds to nearest even in any vector unit and leaves the code in
// the low bits.
inline uint8_t to_code(float x, float levels) {
  constexpr float kRound = 12582912.0f;
  x = x > 0.0f ? x : 0.0f;
  x = x < levels ? x : levels;
  return static_cast<uint8_t>(std::bit_cast<uint32_t>(x + kRound));
}

template <int bits>
void pack_octet(const uint8_t* codes, std::byte* to) {
  constexpr uint64_t kBytes = 0x00ff00ff00ff00ffu;
  constexpr uint64_t kPairs = 0x0000ffff0000ffffu;
  constexpr uint64_t kHalf = 0x00000000ffffffffu;
  uint64_t x;
  std::memcpy(&x, codes, sizeof(x));
  x = (x & kBytes) | (((x >> 8) & kBytes) << bits);
  x = (x & kPairs) | (((x >> 16) & kPairs) << (2 * bits));
  x = (x & kHalf) | ((x >> 32) << (4 * bits));
  std::memcpy(to, &x, bits);
}

template <int bits>
void pack32(const uint8_t* codes, std::byte* to) {
  for (int i = 0; i < kPackedCodes; i += kOctet) {
    pack_octet<bits>(codes + i, to);
    to += bits;
  }
}

template <int bits>
void unpack(const std::byte* packed, int64_t count, uint8_t* codes) {
  constexpr uint64_t kMask = (1u << bits) - 1;
  for (int64_t i = 0; i < count; i += kOctet) {
    uint64_t x = 0;
    std::memcpy(&x, packed, bits);
    for (int j = 0; j < kOctet; ++j) {
      codes[i + j] = static_cast<uint8_t>((x >> (j * bits)) & kMask);
    }
    packed += bits;
  }
}

template <int bits>
void quantize(
    std::span<const float> values,
    int group,
    std::byte* codes,
    float* scales,
    float* biases,
    uint8_t* plain
) {
  constexpr float kLevels = (1 << bits) - 1;
  uint8_t block[kPackedCodes];
  size_t groups = values.size() / static_cast<size_t>(group);
  for (size_t g = 0; g < groups; ++g) {
    const float* from = values.data() + g * static_cast<size_t>(group);
    auto [scale, bias] = choose_scale(from, group, kLevels);
    scales[g] = scale;
    biases[g] = bias;
    for (int i = 0; i < group; i += kPackedCodes) {
      for (int j = 0; j < kPackedCodes; ++j) {
        block[j] = to_code((from[i + j] - bias) / scale, kLevels);
      }
      pack32<bits>(block, codes);
      codes += 4 * bits;
      if (plain != nullptr) {
        std::memcpy(plain, block, sizeof(block));
        plain += kPackedCodes;
      }
    }
  }
}

// Calls f with the width as a constant.
template <typename F>
void with_width(int bits, F&& f) {
  switch (bits) {
    case 1:
      return f(std::integral_constant<int, 1>());
    case 2:
      return f(std::integral_constant<int, 2>());
    case 3:
      return f(std::integral_constant<int, 3>());
    case 4:
      return f(std::integral_constant<int, 4>());
    case 5:
      return f(std::integral_constant<int, 5>());
    case 6:
      return f(std::integral_constant<int, 6>());
    case 8:
      return f(std::integral_constant<int, 8>());
    default:
      fail(ErrorCode::internal, "[weights] no such width of codes");
  }
}

}  // namespace

void pack_codes(const uint8_t* codes, int bits, std::byte* to) {
  with_width(bits, [&](auto width) { pack32<width>(codes, to); });
}

void unpack_codes(
    const std::byte* packed, int bits, int64_t count, uint8_t* codes
) {
  with_width(bits, [&](auto width) { unpack<width>(packed, count, codes); });
}

void quantize_affine_groups(
    std::span<const float> values,
    int bits,
    int group,
    std::byte* codes,
    float* scales,
    float* biases,
    uint8_t* plain
) {
  with_width(bits, [&](auto width) {
    quantize<width>(values, group, codes, scales, biases, plain);
  });
}

void quantize_affine_into(
    std::span<const float> values,
    int bits,
    int group,
    uint32_t* codes,
    float* scales,
    float* biases
) {
  quantize_affine_groups(
      values,
      bits,
      group,
      reinterpret_cast<std::byte*>(codes),
      scales,
      biases,
      nullptr
  );
}

}  // namespace mlxcel
