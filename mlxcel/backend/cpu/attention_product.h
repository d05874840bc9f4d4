#pragma once

#include <cstddef>
#include <cstdint>

namespace mlxcel::backend::cpu {

/// C [rows, cols] = A [rows, depth] B [depth, cols], plus C times a factor per
/// row if there are factors. All row-major; B in float32 or half precision;
/// cols is a multiple of 16.
template <class B>
struct Product {
  int64_t rows;
  int64_t cols;
  int64_t depth;
  const float* a;
  int64_t lda;
  const B* b;
  int64_t ldb;
  float* c;
  int64_t ldc;
  const float* factors;  // [rows] or null
  /// Bytes from B to a matrix like it that is wanted next; 0: none.
  ptrdiff_t ahead;
};

/// Products of matrices that fit the caches. Each element is one chain of fma
/// along the depth, whatever the number of rows.
template <class S>
struct SmallProduct {
  using F = typename S::F;
  static constexpr int64_t kWidth = S::kWidth;

  template <class B>
  static void multiply(const Product<B>& product) {
    for (int64_t row = 0; row < product.rows;) {
      int64_t left = product.rows - row;
      // The last two strips are alike: 4 and 4 rather than 6 and 2.
      int64_t count = left >= 2 * S::kRows ? S::kRows
                      : left > S::kRows    ? (left + 1) / 2
                                           : left;
      strip_of<B, S::kRows>(product, row, count);
      row += count;
    }
  }

 private:
  // `count` is one of 1 .. kRows.
  template <class B, int kRows>
  static void strip_of(const Product<B>& product, int64_t row, int64_t count) {
    if constexpr (kRows > 1) {
      if (count < kRows) {
        strip_of<B, kRows - 1>(product, row, count);
        return;
      }
    }
    strip<B, kRows>(product, row);
  }

  template <class B, int kRows>
  static void strip(const Product<B>& product, int64_t row) {
    int64_t col = 0;
    // Few rows want more columns: enough chains of fma to hide its latency.
    if constexpr (kRows <= 3) {
      for (; col + 4 * kWidth <= product.cols; col += 4 * kWidth) {
        tile<B, kRows, 4>(product, row, col);
      }
    }
    for (; col + 2 * kWidth <= product.cols; col += 2 * kWidth) {
      tile<B, kRows, 2>(product, row, col);
    }
    for (; col < product.cols; col += kWidth) {
      tile<B, kRows, 1>(product, row, col);
    }
  }

  // Not inlined: the sums get all registers.
  template <class B, int kRows, int kVectors>
  [[gnu::noinline]] static void tile(
      const Product<B>& product, int64_t row, int64_t col
  ) {
    const float* a = product.a + row * product.lda;
    const B* b = product.b + col;
    float* c = product.c + row * product.ldc + col;
    F sums[kRows][kVectors];
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = product.factors == nullptr
                         ? S::set(0)
                         : S::load(c + r * product.ldc + v * kWidth) *
                               S::set(product.factors[row + r]);
      }
    }
    int64_t lda = product.lda;
    int64_t ldb = product.ldb;
    ptrdiff_t ahead = product.ahead;
    for (int64_t i = product.depth; i > 0; --i) {
      constexpr size_t kLine = 64;
      constexpr size_t kBytes = kVectors * kWidth * sizeof(B);
      for (size_t at = 0; at < kBytes; at += kLine) {
        __builtin_prefetch(reinterpret_cast<const char*>(b) + ahead + at);
      }
      F columns[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        columns[v] = S::load(b + v * kWidth);
      }
      for (int r = 0; r < kRows; ++r) {
        F value = S::set(a[r * lda]);
        for (int v = 0; v < kVectors; ++v) {
          sums[r][v] = S::fma(value, columns[v], sums[r][v]);
        }
      }
      ++a;
      b += ldb;
    }
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        S::store(c + r * product.ldc + v * kWidth, sums[r][v]);
      }
    }
  }
};

}  // namespace mlxcel::backend::cpu
