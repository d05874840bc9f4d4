#pragma once

#include <immintrin.h>

#include <cstdint>

namespace mlxcel::backend::cpu {

/// Eight float32 lanes; see simd_generic.h. AVX2, FMA and F16C.
struct SimdAvx2 {
  using F = __m256;
  static constexpr int64_t kWidth = 8;
  static constexpr int kRows = 6;

  static F set(float x) {
    return _mm256_set1_ps(x);
  }
  static F load(const float* p) {
    return _mm256_loadu_ps(p);
  }
  static void store(float* p, F x) {
    _mm256_storeu_ps(p, x);
  }
  static F load(const uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))
    );
  }
  static void store_half(uint16_t* p, F x) {
    // The second operand comes through if it is NaN.
    x = _mm256_min_ps(_mm256_set1_ps(65504.0F), x);
    x = _mm256_max_ps(_mm256_set1_ps(-65504.0F), x);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(p),
        _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)
    );
  }
  static F fma(F a, F b, F c) {
    return _mm256_fmadd_ps(a, b, c);
  }
  static F max(F low, F x) {
    return _mm256_max_ps(low, x);
  }
  static F less(F x, F bound, F a, F b) {
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, bound, _CMP_LT_OQ));
  }
  static float sum(F x) {
    __m128 y =
        _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
  }
  static float largest(F x) {
    __m128 y =
        _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
  }
  static F round(F x) {
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static F scale(F x, F n) {
    __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    F y =
        _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), exponent));
    F tiny = _mm256_cmp_ps(n, _mm256_set1_ps(-126.0F), _CMP_LT_OQ);
    return _mm256_andnot_ps(tiny, y);
  }
};

}  // namespace mlxcel::backend::cpu
