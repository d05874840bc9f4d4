#include "mlxcel/weights/affine_groups.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "mlxcel/core/error.h"
#include "mlxcel/weights/quantization.h"

// Loops that compilers vectorise are also made for wider vectors, where the
// build says that the loader can choose between versions of a function.
#if defined(MLXCEL_CLONES) && defined(__x86_64__) && defined(__GNUC__) && \
    !defined(__clang__)
#define MLXCEL_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define MLXCEL_WIDE
#endif
#define MLXCEL_INSIDE __attribute__((always_inline)) inline

namespace mlxcel {

namespace {

// Codes that end on a whole byte, whatever their width.
constexpr int kOctet = 8;

// One group: MLX's choice of scale and bias puts the edge of larger magnitude
// exactly on a code.
struct GroupScale {
  float scale;
  float bias;
};

// Floats as integers of the same order, and back. Compilers vectorise the
// largest and the least of integers.
MLXCEL_INSIDE int32_t to_order(int32_t bits) {
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

// A NaN is passed over, as by MLX's std::min and std::max.
MLXCEL_INSIDE GroupScale
choose_scale(const float* values, int group, float levels) {
  constexpr int32_t kInfinity = 0x7f800000;
  constexpr int kLanes = 16;
  int32_t least[kLanes];
  int32_t most[kLanes];
  std::fill_n(least, kLanes, kInfinity);
  std::fill_n(most, kLanes, to_order(kInfinity | INT32_MIN));
  for (int i = 0; i < group; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      auto bits = std::bit_cast<int32_t>(values[i + j]);
      // All ones for a number, 0 for a NaN.
      int32_t number = -static_cast<int32_t>((bits & INT32_MAX) <= kInfinity);
      int32_t order = to_order(bits);
      int32_t upper = (order & number) | (INT32_MIN & ~number);
      int32_t lower = (order & number) | (INT32_MAX & ~number);
      most[j] = most[j] > upper ? most[j] : upper;
      least[j] = least[j] < lower ? least[j] : lower;
    }
  }
  for (int j = 1; j < kLanes; ++j) {
    most[0] = std::max(most[0], most[j]);
    least[0] = std::min(least[0], least[j]);
  }
  auto low = std::bit_cast<float>(to_order(least[0]));
  auto high = std::bit_cast<float>(to_order(most[0]));
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
// 1.5 * 2^23 rounds to nearest even in any vector unit and leaves the code in
// the low bits.
MLXCEL_INSIDE uint8_t to_code(float x, float levels) {
  constexpr float kRound = 12582912.0f;
  x = x > 0.0f ? x : 0.0f;
  x = x < levels ? x : levels;
  return static_cast<uint8_t>(std::bit_cast<uint32_t>(x + kRound));
}

template <int bits>
MLXCEL_INSIDE void pack_octet(const uint8_t* codes, std::byte* to) {
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
MLXCEL_INSIDE void pack32(const uint8_t* codes, std::byte* to) {
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
MLXCEL_INSIDE void quantize(
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

MLXCEL_WIDE void quantize_affine_groups(
    std::span<const float> values,
    int bits,
    int group,
    std::byte* codes,
    float* scales,
    float* biases,
    uint8_t* plain
) {
  switch (bits) {
    case 2:
      return quantize<2>(values, group, codes, scales, biases, plain);
    case 3:
      return quantize<3>(values, group, codes, scales, biases, plain);
    case 4:
      return quantize<4>(values, group, codes, scales, biases, plain);
    case 5:
      return quantize<5>(values, group, codes, scales, biases, plain);
    case 6:
      return quantize<6>(values, group, codes, scales, biases, plain);
    case 8:
      return quantize<8>(values, group, codes, scales, biases, plain);
    default:
      fail(ErrorCode::internal, "[weights] no such width of codes");
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
