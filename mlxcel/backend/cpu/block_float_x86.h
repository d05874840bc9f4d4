#pragma once

#include <immintrin.h>

#include "mlxcel/backend/cpu/block_float.h"
#include "mlxcel/backend/cpu/unroll.h"

/// Small floats with AVX2 and F16C, for every instruction set that has them.
namespace mlxcel::backend::cpu {

/// Eight E4M3 codes in 16 bits each as float32. Shifted, they are f16 values
/// of 1/256; all ones becomes NaN.
static inline __m256 e4m3_values(__m128i codes) {
  __m128i magnitude = _mm_and_si128(codes, _mm_set1_epi16(0x7f));
  __m128i top = _mm_and_si128(
      _mm_add_epi16(magnitude, _mm_set1_epi16(1)), _mm_set1_epi16(0x80)
  );
  __m128i sign = _mm_and_si128(codes, _mm_set1_epi16(0x80));
  __m128i half = _mm_or_si128(
      _mm_slli_epi16(_mm_or_si128(magnitude, top), 7), _mm_slli_epi16(sign, 8)
  );
  return _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256.0F));
}

/// Half the scales of eight groups times a factor, for codes that are doubled.
static inline __m256 half_block_scales(
    ScaleType type, __m128i bytes, float factor
) {
  __m256 half = _mm256_set1_ps(0.5F * factor);
  if (type == ScaleType::e4m3) {
    return _mm256_mul_ps(e4m3_values(_mm_cvtepu8_epi16(bytes)), half);
  }
  __m256i exponent = _mm256_cvtepu8_epi32(bytes);
  __m256i bits = _mm256_slli_epi32(exponent, 23);
  __m256i least = _mm256_and_si256(
      _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256()),
      _mm256_set1_epi32(0x00400000)
  );
  __m256i no_number = _mm256_and_si256(
      _mm256_cmpeq_epi32(exponent, _mm256_set1_epi32(255)),
      _mm256_set1_epi32(0x00400000)
  );
  bits = _mm256_or_si256(bits, _mm256_or_si256(least, no_number));
  return _mm256_mul_ps(_mm256_castsi256_ps(bits), half);
}

/// Columns [begin, begin + cols) of a row of small floats; both are multiples
/// of 16.
static inline void dequantize_block(
    const RowFormat& format,
    const RowSpan& row,
    int64_t begin,
    int64_t cols,
    float* out
) {
  const auto* scales = reinterpret_cast<const uint8_t*>(row.scales);
  int shift = __builtin_ctz(static_cast<unsigned>(format.group));
  __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kTwiceE2M1));
  for (int64_t i = begin; i < begin + cols; i += 16, out += 16) {
    float scale = block_scale(format.type, scales[i >> shift]) * format.factor;
    if (format.coding == Coding::e4m3) {
      __m128i codes =
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(row.codes + i));
      __m256 factor = _mm256_set1_ps(scale);
      __m256 low = e4m3_values(_mm_cvtepu8_epi16(codes));
      __m256 high = e4m3_values(_mm_cvtepu8_epi16(_mm_srli_si128(codes, 8)));
      _mm256_storeu_ps(out, _mm256_mul_ps(low, factor));
      _mm256_storeu_ps(out + 8, _mm256_mul_ps(high, factor));
      continue;
    }
    __m128i packed =
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row.codes + i / 2));
    __m128i nibble = _mm_set1_epi8(15);
    __m128i codes = _mm_unpacklo_epi8(
        _mm_and_si128(packed, nibble),
        _mm_and_si128(_mm_srli_epi16(packed, 4), nibble)
    );
    __m128i twice = _mm_shuffle_epi8(table, codes);
    __m256 factor = _mm256_set1_ps(0.5F * scale);
    __m256 low = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(twice));
    __m256 high =
        _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(twice, 8)));
    _mm256_storeu_ps(out, _mm256_mul_ps(low, factor));
    _mm256_storeu_ps(out + 8, _mm256_mul_ps(high, factor));
  }
}

}  // namespace mlxcel::backend::cpu
