#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace mlxcel {

/// Arithmetic on sizes that come from a file: empty on overflow.
inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t r;
  return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}
inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t r;
  return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}

/// Product of dimensions; empty on overflow or a negative dimension.
std::optional<uint64_t> checked_product(std::span<const int64_t> dims);

inline int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
inline int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}

/// Reads a little-endian value at any alignment.
template <typename T>
T load_le(const void* p) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

/// IEEE half precision and bfloat16 to float32 (exact) and back (round to
/// nearest even; float_to_f16 overflows to infinity).
float f16_to_float(uint16_t bits);
uint16_t float_to_f16(float value);
inline float bf16_to_float(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}
uint16_t float_to_bf16(float value);

/// Parses the whole text as a number; empty if it is anything else.
std::optional<int64_t> parse_int(std::string_view text);
std::optional<double> parse_double(std::string_view text);

}  // namespace mlxcel
