#pragma once

#include <immintrin.h>

#include <cstdint>

namespace mlxcel::backend::cpu {

/// Sixteen float32 lanes; see simd_generic.h. AVX-512 F.
struct SimdAvx512 {
  using F = __m512;
  static constexpr int64_t kWidth = 16;
  static constexpr int kRows = 12;

  static F set(float x) {
    return _mm512_set1_ps(x);
  }
  static F load(const float* p) {
    return _mm512_loadu_ps(p);
  }
  static void store(float* p, F x) {
    _mm512_storeu_ps(p, x);
  }
  static F load(const uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p
    )));
  }
  static void store_half(uint16_t* p, F x) {
    // The second operand comes through if it is NaN.
    x = _mm512_min_ps(_mm512_set1_ps(65504.0F), x);
    x = _mm512_max_ps(_mm512_set1_ps(-65504.0F), x);
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(p),
        _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)
    );
  }
  static F fma(F a, F b, F c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  static F max(F low, F x) {
    return _mm512_max_ps(low, x);
  }
  static F less(F x, F bound, F a, F b) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, bound, _CMP_LT_OQ), b, a);
  }
  static float sum(F x) {
    return _mm512_reduce_add_ps(x);
  }
  static float largest(F x) {
    return _mm512_reduce_max_ps(x);
  }
  static F round(F x) {
    return _mm512_roundscale_ps(
        x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC
    );
  }
  static F scale(F x, F n) {
    F y = _mm512_scalef_ps(x, n);
    __mmask16 tiny = _mm512_cmp_ps_mask(n, _mm512_set1_ps(-126.0F), _CMP_LT_OQ);
    return _mm512_mask_mov_ps(y, tiny, _mm512_setzero_ps());
  }
};

}  // namespace mlxcel::backend::cpu
