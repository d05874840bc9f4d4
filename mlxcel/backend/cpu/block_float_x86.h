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

/// 32 E4M3 codes as float32 in their order, times 1/256: halves of f16 are made
/// of all bytes at once. All ones becomes NaN.
__attribute__((always_inline)) static inline void load_e4m3(
    const std::byte* p, __m256 (&out)[4]
) {
  __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  __m256i sign = _mm256_set1_epi8(static_cast<char>(0x80));
  __m256i magnitude =
      _mm256_and_si256(_mm256_srli_epi16(codes, 1), _mm256_set1_epi8(0x3f));
  __m256i no_number = _mm256_cmpeq_epi8(
      _mm256_or_si256(codes, sign), _mm256_set1_epi8(static_cast<char>(0xff))
  );
  __m256i high = _mm256_or_si256(_mm256_and_si256(codes, sign), magnitude);
  high = _mm256_or_si256(
      high, _mm256_and_si256(no_number, _mm256_set1_epi8(0x7c))
  );
  __m256i low = _mm256_and_si256(_mm256_slli_epi16(codes, 7), sign);
  __m256i first = _mm256_unpacklo_epi8(low, high);
  __m256i second = _mm256_unpackhi_epi8(low, high);
  out[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(first));
  out[1] = _mm256_cvtph_ps(_mm256_castsi256_si128(second));
  out[2] = _mm256_cvtph_ps(_mm256_extracti128_si256(first, 1));
  out[3] = _mm256_cvtph_ps(_mm256_extracti128_si256(second, 1));
}

/// Two rows of E4M3 codes in groups of 32 times T rows of activations:
/// out[row][t].
template <int T>
static inline void e4m3_products(
    const RowFormat& format,
    const RowSpan (&rows)[2],
    const float* x,
    int64_t ldx,
    float (&out)[2][T]
) {
  __m256 sums[2][T];
  for (int r = 0; r < 2; ++r) {
    for (int t = 0; t < T; ++t) {
      sums[r][t] = _mm256_setzero_ps();
    }
  }
  float unit = 256.0F * format.factor;
  int64_t groups = format.cols / 32;
  for (int64_t g = 0; g < groups; ++g) {
    unroll<2>([&](auto r) __attribute__((always_inline)) {
      const std::byte* codes = rows[r.value].codes + 32 * g;
      _mm_prefetch(codes + 1024, _MM_HINT_T1);
      auto byte = static_cast<uint8_t>(rows[r.value].scales[g]);
      __m256 scale = _mm256_set1_ps(unit * block_scale(format.type, byte));
      __m256 w[4];
      load_e4m3(codes, w);
      unroll<T>([&](auto t) __attribute__((always_inline)) {
        const float* v = x + t.value * ldx + 32 * g;
        __m256 dot = _mm256_mul_ps(w[0], _mm256_loadu_ps(v));
        dot = _mm256_fmadd_ps(w[1], _mm256_loadu_ps(v + 8), dot);
        dot = _mm256_fmadd_ps(w[2], _mm256_loadu_ps(v + 16), dot);
        dot = _mm256_fmadd_ps(w[3], _mm256_loadu_ps(v + 24), dot);
        __m256& sum = sums[r.value][t.value];
        sum = _mm256_fmadd_ps(dot, scale, sum);
      });
    });
  }
  for (int r = 0; r < 2; ++r) {
    for (int t = 0; t < T; ++t) {
      __m128 s = _mm_add_ps(
          _mm256_castps256_ps128(sums[r][t]),
          _mm256_extractf128_ps(sums[r][t], 1)
      );
      s = _mm_add_ps(s, _mm_movehl_ps(s, s));
      out[r][t] = _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
    }
  }
}

/// decode_float of matmul_kernels.h for E4M3 codes.
static inline void decode_e4m3(
    const RowFormat& format,
    const RowSpan* spans,
    const float* x,
    int64_t ldx,
    int64_t count
) {
  int64_t rows = spans[0].rows > spans[1].rows ? spans[0].rows : spans[1].rows;
  for (int64_t i = 0; i < rows; ++i) {
    RowSpan pair[2];
    for (int s = 0; s < 2; ++s) {
      // Where one span is shorter, the other's row is multiplied twice.
      pair[s] = spans[i < spans[s].rows ? s : 1 - s];
      pair[s].codes += i * format.code_bytes;
      pair[s].scales += i * format.scale_bytes;
    }
    auto run = [&](int64_t t, auto rows_of_x) {
      constexpr int kT = decltype(rows_of_x)::value;
      float values[2][kT];
      e4m3_products<kT>(format, pair, x + t * ldx, ldx, values);
      for (int s = 0; s < 2; ++s) {
        for (int n = 0; n < kT && i < spans[s].rows; ++n) {
          spans[s].out[(t + n) * spans[s].ld_out + i] = values[s][n];
        }
      }
    };
    int64_t t = 0;
    for (; t + 2 <= count; t += 2) {
      run(t, Constant<2>());
    }
    if (t < count) {
      run(t, Constant<1>());
    }
  }
}

}  // namespace mlxcel::backend::cpu
