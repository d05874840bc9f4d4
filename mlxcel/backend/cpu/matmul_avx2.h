#pragma once

#include <immintrin.h>

#include "mlxcel/backend/cpu/block_float_x86.h"
#include "mlxcel/backend/cpu/matmul_kernels.h"
#include "mlxcel/backend/cpu/unroll.h"

/// Shared by the files compiled for AVX2 (with FMA, F16C and BMI2).
namespace mlxcel::backend::cpu::avx2 {

static inline int value_bytes(ScaleType type) {
  return type == ScaleType::f32 ? 4 : 2;
}

/// The same of scales; kBlock: those of small floats.
template <bool kBlock>
static inline int scale_bytes(ScaleType type) {
  return kBlock ? 1 : value_bytes(type);
}

static inline __m128i load_16(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}

static inline __m256i load_32(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

/// Eight scales, biases or dense values as float32.
static inline __m256 load_values(ScaleType type, const std::byte* p) {
  if (type == ScaleType::f32) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(p));
  }
  __m128i halves = load_16(p);
  if (type == ScaleType::f16) {
    return _mm256_cvtph_ps(halves);
  }
  return _mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16)
  );
}

/// The first `count` of them (at most 8); the others are 0 and not read.
static inline __m256 load_values(
    ScaleType type, const std::byte* p, int64_t count
) {
  if (count >= 8) {
    return load_values(type, p);
  }
  alignas(32) std::byte copy[32] = {};
  __builtin_memcpy(copy, p, static_cast<size_t>(count * value_bytes(type)));
  return load_values(type, copy);
}

/// Scales of `count` groups (at most 8); kBlock: half those of small floats.
template <bool kBlock>
static inline __m256 load_scales(
    ScaleType type, float factor, const std::byte* p, int64_t count = 8
) {
  if constexpr (kBlock) {
    int64_t bytes = 0;
    __builtin_memcpy(&bytes, p, static_cast<size_t>(count < 8 ? count : 8));
    return half_block_scales(type, _mm_cvtsi64_si128(bytes), factor);
  } else {
    return load_values(type, p, count);
  }
}

/// The bias that belongs to codes of small floats that were made unsigned.
static inline __m256 block_bias(__m256 half_scale) {
  return _mm256_mul_ps(half_scale, _mm256_set1_ps(-kE2M1Zero));
}

/// Nibbles as unsigned codes.
template <bool kBlock>
__attribute__((always_inline)) static inline __m256i nibble_codes(
    __m256i nibbles
) {
  if constexpr (kBlock) {
    return _mm256_shuffle_epi8(
        _mm256_broadcastsi128_si256(load_16(kShiftedE2M1)), nibbles
    );
  } else {
    return nibbles;
  }
}

/// 32 codes in their order, one per byte. Reads 4 * Bits bytes.
template <int Bits>
struct Codes {
  static constexpr int64_t kBytes = 4 * Bits;

  // A code lies within two bytes. They go to 16 bits of their own, a product
  // moves the code to the top and a shift down again. The halves of `first`
  // hold codes 0 to 7 and 16 to 23, those of `second` the rest.
  Codes() {
    alignas(32) uint8_t bytes[2][32];
    alignas(32) uint16_t factors[2][16];
    for (int i = 0; i < 32; ++i) {
      int bit = i * Bits;
      int byte = bit / 8 - (i >= 16 ? kUpper : 0);
      int at = i / 16 * 8 + i % 8;
      int which = i / 8 % 2;
      bytes[which][2 * at] = static_cast<uint8_t>(byte);
      bytes[which][2 * at + 1] =
          static_cast<uint8_t>(byte < 15 ? byte + 1 : 128);
      factors[which][at] = static_cast<uint16_t>(1 << (16 - Bits - bit % 8));
    }
    for (int i = 0; i < 2; ++i) {
      bytes_[i] = load_32(bytes[i]);
      factors_[i] = load_32(factors[i]);
    }
  }

  __m256i load(const std::byte* p) const {
    if constexpr (Bits == 8) {
      return load_32(p);
    } else if constexpr (Bits == 4) {
      __m256i words = _mm256_cvtepu8_epi16(load_16(p));
      words = _mm256_or_si256(words, _mm256_slli_epi16(words, 4));
      return _mm256_and_si256(words, _mm256_set1_epi8(15));
    } else {
      __m256i packed = both_halves(p);
      __m256i first = _mm256_srli_epi16(
          _mm256_mullo_epi16(
              _mm256_shuffle_epi8(packed, bytes_[0]), factors_[0]
          ),
          16 - Bits
      );
      __m256i second = _mm256_srli_epi16(
          _mm256_mullo_epi16(
              _mm256_shuffle_epi8(packed, bytes_[1]), factors_[1]
          ),
          16 - Bits
      );
      return _mm256_packus_epi16(first, second);
    }
  }

 private:
  // Where the upper half's bytes start, counted from p.
  static constexpr int kUpper = Bits > 4 ? 4 * Bits - 16 : 0;

  static __m256i both_halves(const std::byte* p) {
    if constexpr (Bits > 4) {
      return _mm256_inserti128_si256(
          _mm256_castsi128_si256(load_16(p)), load_16(p + kUpper), 1
      );
    }
    int64_t low = 0;
    __builtin_memcpy(&low, p, Bits == 1 ? 4 : 8);
    int32_t high = 0;
    if constexpr (Bits == 3) {
      __builtin_memcpy(&high, p + 8, 4);
    }
    return _mm256_broadcastsi128_si256(_mm_set_epi64x(high, low));
  }

  __m256i bytes_[2];
  __m256i factors_[2];
};

void quantize(
    const float* x,
    int64_t cols,
    int group,
    Order order,
    int8_t* q,
    float* scale,
    float* sum
);
void dequantize(
    const RowFormat& format,
    const RowSpan& row,
    int64_t begin,
    int64_t cols,
    float* out
);
void finish(const FinishJob& job);

Order decode_order(int bits);
void decode_int8(
    const RowFormat& format,
    const RowSpan* spans,
    const Int8Rows& x,
    int64_t count,
    std::byte* scratch
);
void decode_float(
    const RowFormat& format,
    const RowSpan* spans,
    const float* x,
    int64_t ldx,
    int64_t count,
    std::byte* scratch
);

void pack_int8(
    const RowFormat& format,
    const RowSpan& span,
    int64_t begin,
    int64_t cols,
    const Panel& panel,
    std::byte* scratch
);
void multiply_int8(
    const RowFormat& format,
    const Panel* panels,
    int count_panels,
    int64_t cols,
    const Int8Rows& x,
    int64_t count,
    bool first,
    float* tile,
    int64_t ld_tile
);
void pack_float(
    const RowFormat& format,
    const RowSpan& span,
    int64_t begin,
    int64_t cols,
    const Panel& panel,
    std::byte* scratch
);
void multiply_float(
    const Panel* panels,
    int count_panels,
    int64_t cols,
    const float* x,
    int64_t ldx,
    int64_t count,
    bool first,
    float* tile,
    int64_t ld_tile
);

}  // namespace mlxcel::backend::cpu::avx2
