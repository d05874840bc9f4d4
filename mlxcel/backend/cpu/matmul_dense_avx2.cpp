#include "mlxcel/backend/cpu/matmul_avx2.h"

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

template <int T>
void float_pair(
    ScaleType type,
    const std::byte* const (&rows)[2],
    int64_t cols,
    const float* x,
    int64_t ldx,
    float* const (&out)[2],
    const RowSpan* spans
) {
  float values[2][T] = {};
  switch (type) {
    case ScaleType::f32:
      float_rows<T>(ScaleType::f32, rows, cols, x, ldx, values);
      break;
    case ScaleType::f16:
      float_rows<T>(ScaleType::f16, rows, cols, x, ldx, values);
      break;
    case ScaleType::bf16:
      float_rows<T>(ScaleType::bf16, rows, cols, x, ldx, values);
      break;
  }
  for (int s = 0; s < 2; ++s) {
    for (int t = 0; t < T && out[s] != nullptr; ++t) {
      out[s][t * spans[s].ld_out] = values[s][t];
    }
  }
}

}  // namespace

void decode_float(
    const RowFormat& format,
    const RowSpan* spans,
    const float* x,
    int64_t ldx,
    int64_t count,
    std::byte* scratch
) {
  int64_t rows = spans[0].rows > spans[1].rows ? spans[0].rows : spans[1].rows;
  auto* unpacked = reinterpret_cast<float*>(scratch);
  ScaleType type = format.bits > 0 ? ScaleType::f32 : format.type;
  for (int64_t i = 0; i < rows; ++i) {
    const std::byte* pair[2];
    float* out[2];
    for (int s = 0; s < 2; ++s) {
      bool present = i < spans[s].rows;
      const RowSpan& span = spans[present ? s : 1 - s];
      out[s] = present ? span.out + i : nullptr;
      pair[s] = span.codes + i * format.code_bytes;
      if (format.bits > 0) {
        RowSpan one{
            pair[s],
            span.scales + i * format.scale_bytes,
            span.biases + i * format.scale_bytes,
            1,
            nullptr,
            0};
        float* to = unpacked + s * (format.cols + 32);
        dequantize(format, one, 0, format.cols, to);
        pair[s] = reinterpret_cast<const std::byte*>(to);
      }
    }
    auto advance = [&](int by) {
      x += by * ldx;
      for (int s = 0; s < 2; ++s) {
        out[s] = out[s] != nullptr ? out[s] + by * spans[s].ld_out : nullptr;
      }
    };
    const float* start = x;
    int64_t t = 0;
    for (; t + 2 <= count; t += 2) {
      float_pair<2>(type, pair, format.cols, x, ldx, out, spans);
      advance(2);
    }
    if (t < count) {
      float_pair<1>(type, pair, format.cols, x, ldx, out, spans);
    }
    x = start;
  }
}

}  // namespace mlxcel::backend::cpu::avx2
