#include "mlxcel/core/numbers.h"

#include <charconv>
#include <cmath>

namespace mlxcel {

std::optional<uint64_t> checked_product(std::span<const int64_t> dims) {
  uint64_t product = 1;
  for (int64_t dim : dims) {
    if (dim < 0) {
      return std::nullopt;
    }
    auto next = checked_mul(product, static_cast<uint64_t>(dim));
    if (!next) {
      return std::nullopt;
    }
    product = *next;
  }
  return product;
}

float f16_to_float(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 0x1f;
  uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0) {
    float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -value : value;
  }
  uint32_t wide = exponent == 31
                      ? sign | 0x7f800000u | (mantissa << 13)
                      : sign | ((exponent + 112) << 23) | (mantissa << 13);
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

uint16_t float_to_f16(float value) {
  uint32_t wide;
  std::memcpy(&wide, &value, sizeof(wide));
  uint16_t sign = static_cast<uint16_t>((wide >> 16) & 0x8000);
  uint32_t magnitude = wide & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) {
    return sign | (magnitude > 0x7f800000u ? 0x7e00 : 0x7c00);
  }
  if (magnitude >= 0x477ff000u) {  // rounds to 65536 or more
    return sign | 0x7c00;
  }
  if (magnitude < 0x38800000u) {  // subnormal half: value / 2^-24, to even
    float scaled = std::ldexp(std::fabs(value), 24);
    return sign | static_cast<uint16_t>(std::nearbyint(scaled));
  }
  uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1);
  return sign | static_cast<uint16_t>((rounded - 0x38000000u) >> 13);
}

uint16_t float_to_bf16(float value) {
  uint32_t wide;
  std::memcpy(&wide, &value, sizeof(wide));
  if ((wide & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<uint16_t>((wide >> 16) | 0x40);
  }
  return static_cast<uint16_t>((wide + 0x7fffu + ((wide >> 16) & 1)) >> 16);
}

namespace {

template <typename T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::optional<int64_t> parse_int(std::string_view text) {
  return parse_whole<int64_t>(text);
}

std::optional<double> parse_double(std::string_view text) {
  return parse_whole<double>(text);
}

}  // namespace mlxcel
