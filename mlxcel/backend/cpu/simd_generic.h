#pragma once

#include <cstdint>
#include <cstring>

namespace mlxcel::backend::cpu {

/// Four float32 lanes in the compiler's portable vectors. The kernels are
/// written once over this set of functions; simd_avx2.h and simd_avx512.h are
/// the others, each included by files compiled for its instruction set only.
struct SimdGeneric {
  using F = float __attribute__((vector_size(16)));
  using I = int32_t __attribute__((vector_size(16)));
  static constexpr int64_t kWidth = 4;
  /// Rows of a product that are worth keeping in registers at once.
  static constexpr int kRows = 4;

  static F set(float x) {
    return F{x, x, x, x};
  }
  static F load(const float* p) {
    F x;
    std::memcpy(&x, p, sizeof(x));
    return x;
  }
  static void store(float* p, F x) {
    std::memcpy(p, &x, sizeof(x));
  }
  /// IEEE half precision, exact; subnormals and infinities included.
  static F load(const uint16_t* p) {
    I h = {p[0], p[1], p[2], p[3]};
    I sign = (h & 0x8000) << 16;
    I rest = (h & 0x7fff) << 13;
    // Moves the exponent by a product, which also normalises subnormals.
    F x = bits_to_float(rest) * set(0x1p112F);
    I special = (h & 0x7c00) == 0x7c00;
    I wide = float_to_bits(x) | (special & 0x7f800000);
    return bits_to_float(wide | sign);
  }
  /// Rounds to nearest even and clamps to the largest finite value.
  static void store_half(uint16_t* p, F x) {
    for (int i = 0; i < kWidth; ++i) {
      p[i] = to_half(x[i]);
    }
  }
  static F fma(F a, F b, F c) {
    return a * b + c;
  }
  /// NaN if x is.
  static F max(F low, F x) {
    return low > x ? low : x;
  }
  /// a where x < bound, else b.
  static F less(F x, F bound, F a, F b) {
    return x < bound ? a : b;
  }
  static float sum(F x) {
    return (x[0] + x[2]) + (x[1] + x[3]);
  }
  static float largest(F x) {
    float a = x[0] > x[1] ? x[0] : x[1];
    float b = x[2] > x[3] ? x[2] : x[3];
    return a > b ? a : b;
  }
  static F round(F x) {
    // Adding 1.5 * 2^23 leaves no room for a fraction. |x| < 2^22.
    F magic = set(12582912.0F);
    return (x + magic) - magic;
  }
  /// x * 2^n for integral n; 0 where n < -126. n <= 127.
  static F scale(F x, F n) {
    I exponent = __builtin_convertvector(n < -126.0F ? set(0) : n, I);
    F y = bits_to_float(float_to_bits(x) + (exponent << 23));
    return n < -126.0F ? set(0) : y;
  }

 private:
  static F bits_to_float(I x) {
    F y;
    std::memcpy(&y, &x, sizeof(y));
    return y;
  }
  static I float_to_bits(F x) {
    I y;
    std::memcpy(&y, &x, sizeof(y));
    return y;
  }
  static uint16_t to_half(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof(bits));
    auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) {
      return static_cast<uint16_t>(sign | 0x7e00);
    }
    if (bits >= 0x477fe000) {  // 65504 and above
      return static_cast<uint16_t>(sign | 0x7bff);
    }
    if (bits < 0x38800000) {  // below 2^-14: in units of 2^-24
      float magnitude;
      std::memcpy(&magnitude, &bits, sizeof(magnitude));
      magnitude += 0.5F;  // the last bit of 0.5 is 2^-24: rounds to even
      std::memcpy(&bits, &magnitude, sizeof(bits));
      return static_cast<uint16_t>(sign | (bits - 0x3f000000));
    }
    uint32_t odd = (bits >> 13) & 1;
    bits += 0xfff + odd - (112U << 23);
    return static_cast<uint16_t>(sign | (bits >> 13));
  }
};

}  // namespace mlxcel::backend::cpu
