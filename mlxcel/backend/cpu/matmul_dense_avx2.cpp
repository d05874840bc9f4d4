#include "mlxcel/backend/cpu/matmul_avx2.h"
#include "mlxcel/backend/cpu/matmul_dense.h"

/// One to a few rows of float32 activations times dense rows, or quantised
/// ones that are unpacked first.
namespace mlxcel::backend::cpu::avx2 {

namespace {

// How far ahead of the values in use memory is asked for.
constexpr int64_t kAhead = 1024;

template <int T, typename F>
__attribute__((always_inline)) inline void each_pair(F&& f) {
  unroll<2>([&](auto r) __attribute__((always_inline)) {
    unroll<T>([&](auto t) __attribute__((always_inline)) { f(r, t); });
  });
}

float sum_all(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

// Two rows of dense values times T rows of activations: out[row][t].
template <int T>
__attribute__((always_inline)) inline void float_rows(
    ScaleType type,
    const std::byte* const (&rows)[2],
    int64_t cols,
    const float* x,
    int64_t ldx,
    float (&out)[2][T]
) {
  __m256 sums[2][T][2];
  each_pair<T>([&](auto r, auto t) __attribute__((always_inline)) {
    sums[r.value][t.value][0] = _mm256_setzero_ps();
    sums[r.value][t.value][1] = _mm256_setzero_ps();
  });
  int size = value_bytes(type);
  auto step = [&](int64_t i, auto half) __attribute__((always_inline)) {
    __m256 w[2];
    unroll<2>([&](auto r) __attribute__((always_inline)) {
      w[r.value] = load_values(type, rows[r.value] + i * size);
    });
    unroll<T>([&](auto t) __attribute__((always_inline)) {
      __m256 v = _mm256_loadu_ps(x + t.value * ldx + i);
      unroll<2>([&](auto r) __attribute__((always_inline)) {
        __m256& sum = sums[r.value][t.value][half.value];
        sum = _mm256_fmadd_ps(w[r.value], v, sum);
      });
    });
  };
  int64_t i = 0;
  for (; i + 32 <= cols; i += 32) {
    unroll<2>([&](auto r) __attribute__((always_inline)) {
      const std::byte* ahead = rows[r.value] + i * size + kAhead;
      _mm_prefetch(ahead, _MM_HINT_T1);
      if (size == 4) {
        _mm_prefetch(ahead + 64, _MM_HINT_T1);
      }
    });
    step(i, Constant<0>());
    step(i + 8, Constant<1>());
    step(i + 16, Constant<0>());
    step(i + 24, Constant<1>());
  }
  for (; i + 8 <= cols; i += 8) {
    step(i, Constant<0>());
  }
  if (i < cols) {
    each_pair<T>([&](auto r, auto t) __attribute__((always_inline)) {
      const auto* tail =
          reinterpret_cast<const std::byte*>(x + t.value * ldx + i);
      __m256& sum = sums[r.value][t.value][0];
      sum = _mm256_fmadd_ps(
          load_values(type, rows[r.value] + i * size, cols - i),
          load_values(ScaleType::f32, tail, cols - i),
          sum
      );
    });
  }
  each_pair<T>([&](auto r, auto t) __attribute__((always_inline)) {
    out[r.value][t.value] = sum_all(
        _mm256_add_ps(sums[r.value][t.value][0], sums[r.value][t.value][1])
    );
  });
}

struct Avx2 {
  static constexpr int kRows = 2;

  template <int T>
  __attribute__((always_inline)) static void multiply(
      ScaleType type,
      const std::byte* const (&rows)[2],
      int64_t cols,
      const float* x,
      int64_t ldx,
      float (&out)[2][T]
  ) {
    float_rows<T>(type, rows, cols, x, ldx, out);
  }
  static void dequantize(
      const RowFormat& format, const RowSpan& row, int64_t cols, float* out
  ) {
    avx2::dequantize(format, row, 0, cols, out);
  }
};

}  // namespace

void decode_float(
    const RowFormat& format,
    const RowSpan* spans,
    const float* x,
    int64_t ldx,
    int64_t count,
    std::byte* scratch
) {
  if (format.coding == Coding::e4m3) {
    decode_e4m3(format, spans, x, ldx, count);
    return;
  }
  decode_float_rows<Avx2>(format, spans, x, ldx, count, scratch);
}

}  // namespace mlxcel::backend::cpu::avx2
