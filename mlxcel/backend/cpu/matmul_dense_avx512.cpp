#include "mlxcel/backend/cpu/matmul_avx512.h"
#include "mlxcel/backend/cpu/matmul_dense.h"

/// One to a few rows of float32 activations times dense rows, or quantised
/// ones that are unpacked first.
namespace mlxcel::backend::cpu::avx512 {

namespace {

// How far ahead of the values in use memory is asked for.
constexpr int64_t kAhead = 1024;

// Two rows of dense values times T rows of activations.
template <int T>
__attribute__((always_inline)) inline void float_rows(
    ScaleType type,
    const std::byte* const (&rows)[2],
    int64_t cols,
    const float* x,
    int64_t ldx,
    float (&out)[2][T]
) {
  __m512 sums[2][T][2];
  auto each = [](auto f) __attribute__((always_inline)) {
    unroll<2>([&](auto r) __attribute__((always_inline)) {
      unroll<T>([&](auto t) __attribute__((always_inline)) { f(r, t); });
    });
  };
  each([&](auto r, auto t) __attribute__((always_inline)) {
    sums[r.value][t.value][0] = _mm512_setzero_ps();
    sums[r.value][t.value][1] = _mm512_setzero_ps();
  });
  int size = value_bytes(type);
  auto step = [&](int64_t i, auto half, __mmask16 mask)
      __attribute__((always_inline)) {
    __m512 w[2];
    unroll<2>([&](auto r) __attribute__((always_inline)) {
      w[r.value] = load_values(type, rows[r.value] + i * size, mask);
    });
    unroll<T>([&](auto t) __attribute__((always_inline)) {
      __m512 v = _mm512_maskz_loadu_ps(mask, x + t.value * ldx + i);
      unroll<2>([&](auto r) __attribute__((always_inline)) {
        __m512& sum = sums[r.value][t.value][half.value];
        sum = _mm512_fmadd_ps(w[r.value], v, sum);
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
    step(i, Constant<0>(), 0xffff);
    step(i + 16, Constant<1>(), 0xffff);
  }
  if (i < cols) {
    step(i, Constant<0>(), static_cast<__mmask16>(byte_mask(cols - i)));
  }
  if (i + 16 < cols) {
    step(
        i + 16, Constant<1>(), static_cast<__mmask16>(byte_mask(cols - i - 16))
    );
  }
  each([&](auto r, auto t) __attribute__((always_inline)) {
    out[r.value][t.value] = _mm512_reduce_add_ps(
        _mm512_add_ps(sums[r.value][t.value][0], sums[r.value][t.value][1])
    );
  });
}

struct Avx512 {
  static constexpr int kRows = 4;

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
    avx512::dequantize(format, row, 0, cols, out);
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
  decode_float_rows<Avx512>(format, spans, x, ldx, count, scratch);
}

}  // namespace mlxcel::backend::cpu::avx512
