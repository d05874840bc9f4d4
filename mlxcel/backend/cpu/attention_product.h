#pragma once

#include <cstdint>

namespace mlxcel::backend::cpu {

/// Small products over row-major matrices: C [rows, n] = C * factor of the row
/// + A [rows, k] B [k, n]. Each element is one chain of fma along k, whatever
/// the number of rows. B is float32 or half precision, n a multiple of 16.
template <class S>
struct SmallProduct {
  using F = typename S::F;
  static constexpr int64_t kWidth = S::kWidth;

  template <class B, int kRows, int kVectors>
  static void tile(
      int64_t k,
      const float* a,
      int64_t lda,
      const B* b,
      int64_t ldb,
      float* c,
      int64_t ldc,
      const float* factors
  ) {
    F sums[kRows][kVectors];
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = factors == nullptr ? S::set(0)
                                        : S::load(c + r * ldc + v * kWidth) *
                                              S::set(factors[r]);
      }
    }
    for (int64_t i = 0; i < k; ++i) {
      F columns[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        columns[v] = S::load(b + i * ldb + v * kWidth);
      }
      for (int r = 0; r < kRows; ++r) {
        F value = S::set(a[r * lda + i]);
        for (int v = 0; v < kVectors; ++v) {
          sums[r][v] = S::fma(value, columns[v], sums[r][v]);
        }
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        S::store(c + r * ldc + v * kWidth, sums[r][v]);
      }
    }
  }

  template <class B, int kRows>
  static void rows_of(
      int64_t n,
      int64_t k,
      const float* a,
      int64_t lda,
      const B* b,
      int64_t ldb,
      float* c,
      int64_t ldc,
      const float* factors
  ) {
    // Few rows want more columns: enough chains of fma to hide its latency.
    constexpr int kMany = kRows <= 3 ? 4 : 2;
    int64_t j = 0;
    for (; j + kMany * kWidth <= n; j += kMany * kWidth) {
      tile<B, kRows, kMany>(k, a, lda, b + j, ldb, c + j, ldc, factors);
    }
    for (; j < n; j += kWidth) {
      tile<B, kRows, 1>(k, a, lda, b + j, ldb, c + j, ldc, factors);
    }
  }

  template <class B, int kRows>
  static void run(
      int64_t rows,
      int64_t n,
      int64_t k,
      const float* a,
      int64_t lda,
      const B* b,
      int64_t ldb,
      float* c,
      int64_t ldc,
      const float* factors
  ) {
    while (rows >= kRows) {
      rows_of<B, kRows>(n, k, a, lda, b, ldb, c, ldc, factors);
      rows -= kRows;
      a += kRows * lda;
      c += kRows * ldc;
      factors = factors == nullptr ? nullptr : factors + kRows;
    }
    if constexpr (kRows > 1) {
      constexpr int kNext = kRows > 6 ? 6 : kRows - 1;
      if (rows > 0) {
        run<B, kNext>(rows, n, k, a, lda, b, ldb, c, ldc, factors);
      }
    }
  }

  template <class B>
  static void multiply(
      int64_t rows,
      int64_t n,
      int64_t k,
      const float* a,
      int64_t lda,
      const B* b,
      int64_t ldb,
      float* c,
      int64_t ldc,
      const float* factors
  ) {
    run<B, S::kRows>(rows, n, k, a, lda, b, ldb, c, ldc, factors);
  }
};

}  // namespace mlxcel::backend::cpu
