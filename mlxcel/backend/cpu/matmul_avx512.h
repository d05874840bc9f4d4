#pragma once

#include <immintrin.h>

#include "mlxcel/backend/cpu/block_float_x86.h"
#include "mlxcel/backend/cpu/matmul_kernels.h"
#include "mlxcel/backend/cpu/unroll.h"

/// Shared by the files compiled for AVX-512 (F, BW, DQ, VL, VNNI, VBMI).
namespace mlxcel::backend::cpu::avx512 {

/// Sixteen scales, biases or dense values as float32; those outside the mask
/// are 0 and not read.
static inline __m512 load_values(
    ScaleType type, const std::byte* p, __mmask16 mask = 0xffff
) {
  if (type == ScaleType::f32) {
    return _mm512_maskz_loadu_ps(mask, p);
  }
  __m256i halves = _mm256_maskz_loadu_epi16(mask, p);
  if (type == ScaleType::f16) {
    return _mm512_cvtph_ps(halves);
  }
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16)
  );
}

static inline int value_bytes(ScaleType type) {
  return type == ScaleType::f32 ? 4 : 2;
}

/// Scales of sixteen groups; kBlock: half those of small floats.
template <bool kBlock>
static inline __m512 load_scales(
    ScaleType type, float factor, const std::byte* p, __mmask16 mask = 0xffff
) {
  if constexpr (kBlock) {
    __m128i bytes = _mm_maskz_loadu_epi8(mask, p);
    return _mm512_insertf32x8(
        _mm512_castps256_ps512(half_block_scales(type, bytes, factor)),
        half_block_scales(type, _mm_srli_si128(bytes, 8), factor),
        1
    );
  } else {
    return load_values(type, p, mask);
  }
}

template <bool kBlock>
static inline int scale_bytes(ScaleType type) {
  return kBlock ? 1 : value_bytes(type);
}

/// The bias that belongs to codes of small floats that were made unsigned.
static inline __m512 block_bias(__m512 half_scale) {
  return _mm512_mul_ps(half_scale, _mm512_set1_ps(-kE2M1Zero));
}

/// Nibbles as unsigned codes.
template <bool kBlock>
__attribute__((always_inline)) static inline __m512i nibble_codes(
    __m512i nibbles
) {
  if constexpr (kBlock) {
    __m128i table =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(kShiftedE2M1));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), nibbles);
  } else {
    return nibbles;
  }
}

/// Of a row's code bytes those from `p` on, at most `left`, as a load mask.
static inline __mmask64 byte_mask(int64_t left) {
  return left >= 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
}

/// 64 codes in their order, one per byte. Reads the bytes under the mask.
template <int Bits>
struct Codes {
  static constexpr int64_t kBytes = 8 * Bits;

  // Each group of eight codes goes to a lane of 64 bits of its own, from
  // which eight unaligned bytes are taken.
  Codes() {
    alignas(64) uint8_t spread[64];
    alignas(64) uint8_t shift[64];
    for (int i = 0; i < 64; ++i) {
      spread[i] = static_cast<uint8_t>(i / 8 * Bits + i % 8);
      shift[i] = static_cast<uint8_t>(i % 8 * Bits);
    }
    spread_ = _mm512_load_si512(spread);
    shift_ = _mm512_load_si512(shift);
  }

  __m512i load(const std::byte* p, __mmask64 mask) const {
    __m512i packed = _mm512_maskz_loadu_epi8(mask, p);
    if constexpr (Bits == 8) {
      return packed;
    }
    packed = _mm512_permutexvar_epi8(spread_, packed);
    return _mm512_and_si512(
        _mm512_multishift_epi64_epi8(shift_, packed),
        _mm512_set1_epi8((1 << Bits) - 1)
    );
  }

 private:
  __m512i spread_;
  __m512i shift_;
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

}  // namespace mlxcel::backend::cpu::avx512
