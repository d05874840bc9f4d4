#include "mlxcel/weights/small_floats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "mlxcel/core/numbers.h"

namespace mlxcel {

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <typename F>
std::array<float, 256> byte_table(F decode) {
  std::array<float, 256> table;
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = decode(static_cast<int>(i));
  }
  return table;
}

float decode_e4m3(int byte) {
  int exponent = (byte >> 3) & 15;
  int mantissa = byte & 7;
  float value =
      exponent == 0
          ? std::ldexp(static_cast<float>(mantissa), -9)
          : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  value = (byte & 0x7f) == 0x7f ? kNaN : value;
  return (byte & 0x80) != 0 ? -value : value;
}

float decode_e5m2(int byte) {
  int exponent = (byte >> 2) & 31;
  int mantissa = byte & 3;
  float value =
      exponent == 0
          ? std::ldexp(static_cast<float>(mantissa), -16)
          : std::ldexp(static_cast<float>(4 + mantissa), exponent - 17);
  if (exponent == 31) {
    value = mantissa == 0 ? std::numeric_limits<float>::infinity() : kNaN;
  }
  return (byte & 0x80) != 0 ? -value : value;
}

// Compared as integers, which compilers vectorise, and where a NaN is largest.
float largest_magnitude(const float* values, int count) {
  int32_t largest = 0;
  for (int i = 0; i < count; ++i) {
    int32_t bits = std::bit_cast<int32_t>(values[i]) & 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  return std::bit_cast<float>(largest);
}

// Without branches, for the same reason.
inline uint8_t encode_e4m3(float value) {
  auto all = std::bit_cast<int32_t>(value);
  int32_t bits = all & 0x7fffffff;
  constexpr int32_t kLargest = 543 << 21;      // 448
  constexpr int32_t kLeastNormal = 121 << 23;  // 2^-6
  constexpr int32_t kInfinity = 255 << 23;
  // Added to 2^14, the least bit that stays is 2^-9.
  constexpr int32_t kShift = 141 << 23;
  float shifted = std::bit_cast<float>(bits) + std::bit_cast<float>(kShift);
  int32_t small = std::bit_cast<int32_t>(shifted) - kShift;
  int32_t normal = (bits + 0x7ffff + ((bits >> 20) & 1) - (120 << 23)) >> 20;
  int32_t code = bits < kLeastNormal ? small : normal;
  code = bits >= kLargest ? 0x7e : code;
  code = bits > kInfinity ? 0x7f : code;
  return static_cast<uint8_t>(code | ((all >> 24) & 0x80));
}

float round_to(DType type, float value) {
  switch (type) {
    case DType::f16:
      return f16_to_float(float_to_f16(value));
    case DType::bf16:
      return bf16_to_float(float_to_bf16(value));
    default:
      return value;
  }
}

// The exponent of the scale, as MLX's fast::Quantize takes it: rounded up,
// 2^0 where all is zero.
int shared_exponent(const float* values, int count, float limit, DType type) {
  float ratio = round_to(type, largest_magnitude(values, count) / limit);
  if (ratio == 0.0f || !std::isfinite(ratio)) {
    return 0;
  }
  int exponent = static_cast<int>(std::ceil(std::log2(ratio)));
  return std::clamp(exponent, -127, 127);
}

void pack_pairs(const float* values, int count, float scale, std::byte* out) {
  for (int i = 0; i < count; i += 2) {
    int low = to_e2m1(values[i] / scale);
    int high = to_e2m1(values[i + 1] / scale);
    out[i / 2] = static_cast<std::byte>(low | (high << 4));
  }
}

}  // namespace

const std::array<float, 16>& e2m1_values() {
  static constexpr std::array<float, 16> table = {
      0.0f,
      0.5f,
      1.0f,
      1.5f,
      2.0f,
      3.0f,
      4.0f,
      6.0f,
      -0.0f,
      -0.5f,
      -1.0f,
      -1.5f,
      -2.0f,
      -3.0f,
      -4.0f,
      -6.0f};
  return table;
}

const std::array<float, 256>& e4m3_values() {
  static const auto table = byte_table(decode_e4m3);
  return table;
}

const std::array<float, 256>& e5m2_values() {
  static const auto table = byte_table(decode_e5m2);
  return table;
}

const std::array<float, 256>& e8m0_values() {
  static const auto table = byte_table([](int byte) {
    return byte == 0xff ? kNaN : std::ldexp(1.0f, byte - 127);
  });
  return table;
}

uint8_t to_e4m3(float value) {
  return encode_e4m3(value);
}

uint8_t to_e2m1(float value) {
  if (std::isnan(value)) {
    return 7;
  }
  float x = std::fabs(value);
  uint8_t code = x > 5.0f    ? 7
                 : x > 3.5f  ? 6
                 : x > 2.5f  ? 5
                 : x > 1.75f ? 4
                 : x > 1.25f ? 3
                 : x > 0.75f ? 2
                 : x > 0.25f ? 1
                             : 0;
  return value < 0 && code != 0 ? code | 8 : code;
}

void quantize_mxfp4(
    std::span<const float> values,
    std::byte* codes,
    std::byte* scales,
    DType type
) {
  constexpr int kGroup = 32;
  for (size_t at = 0; at < values.size(); at += kGroup) {
    int exponent = shared_exponent(values.data() + at, kGroup, 6.0f, type);
    *scales++ = static_cast<std::byte>(exponent + 127);
    pack_pairs(values.data() + at, kGroup, std::ldexp(1.0f, exponent), codes);
    codes += kGroup / 2;
  }
}

void quantize_mxfp8(
    std::span<const float> values,
    std::byte* codes,
    std::byte* scales,
    DType type
) {
  constexpr int kGroup = 32;
  for (size_t at = 0; at < values.size(); at += kGroup) {
    int exponent = shared_exponent(values.data() + at, kGroup, 448.0f, type);
    *scales++ = static_cast<std::byte>(exponent + 127);
    float inverse = std::ldexp(1.0f, -exponent);  // exact, as is the product
    // Bytes may alias anything, so the loop runs between local arrays.
    float from[kGroup];
    std::memcpy(from, values.data() + at, sizeof(from));
    uint8_t block[kGroup];
    for (int i = 0; i < kGroup; ++i) {
      block[i] = encode_e4m3(from[i] * inverse);
    }
    std::memcpy(codes, block, sizeof(block));
    codes += kGroup;
  }
}

void quantize_nvfp4(
    std::span<const float> values,
    std::byte* codes,
    std::byte* scales,
    DType type
) {
  constexpr int kGroup = 16;
  for (size_t at = 0; at < values.size(); at += kGroup) {
    float largest = largest_magnitude(values.data() + at, kGroup);
    uint8_t byte = to_e4m3(round_to(type, largest / 6.0f));
    *scales++ = static_cast<std::byte>(byte);
    float scale = e4m3_values()[byte];
    pack_pairs(values.data() + at, kGroup, scale == 0 ? 1.0f : scale, codes);
    codes += kGroup / 2;
  }
}

}  // namespace mlxcel
