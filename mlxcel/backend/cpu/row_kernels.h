#pragma once

#include "mlxcel/backend/cpu/kernels.h"
#include "mlxcel/backend/cpu/simd_math.h"

namespace mlxcel::backend::cpu {

/// The row kernels over one set of vector functions; included by the file of
/// each instruction set.
template <class S>
struct RowOperations {
  using F = typename S::F;
  static constexpr int64_t kWidth = S::kWidth;

  // Sum of f(x) over the row: two accumulators, then the tail lane by lane.
  template <typename Vector, typename Scalar>
  static float sum(const float* x, int64_t n, Vector vector, Scalar scalar) {
    F a = S::set(0);
    F b = S::set(0);
    int64_t i = 0;
    for (; i + 2 * kWidth <= n; i += 2 * kWidth) {
      a = vector(S::load(x + i), a);
      b = vector(S::load(x + i + kWidth), b);
    }
    float total = S::sum(a + b);
    for (; i < n; ++i) {
      total += scalar(x[i]);
    }
    return total;
  }

  static void rms_norm(
      const float* x, const float* weight, float epsilon, int64_t n, float* y
  ) {
    float squares = sum(
        x,
        n,
        [](F v, F a) { return S::fma(v, v, a); },
        [](float v) { return v * v; }
    );
    float factor =
        1.0F / __builtin_sqrtf(squares / static_cast<float>(n) + epsilon);
    if (weight == nullptr) {
      multiply(x, factor, n, y);
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      y[i] = x[i] * factor * weight[i];
    }
  }

  static void layer_norm(
      const float* x,
      const float* weight,
      const float* bias,
      float epsilon,
      int64_t n,
      float* y
  ) {
    float mean =
        sum(
            x, n, [](F v, F a) { return a + v; }, [](float v) { return v; }
        ) /
        static_cast<float>(n);
    F means = S::set(mean);
    float squares = sum(
        x,
        n,
        [means](F v, F a) { return S::fma(v - means, v - means, a); },
        [mean](float v) { return (v - mean) * (v - mean); }
    );
    float factor =
        1.0F / __builtin_sqrtf(squares / static_cast<float>(n) + epsilon);
    for (int64_t i = 0; i < n; ++i) {
      float value = (x[i] - mean) * factor;
      value = weight != nullptr ? value * weight[i] : value;
      y[i] = bias != nullptr ? value + bias[i] : value;
    }
  }

  static void add(const float* a, const float* b, int64_t n, float* y) {
    for (int64_t i = 0; i < n; ++i) {
      y[i] = a[i] + b[i];
    }
  }

  static void multiply(const float* x, float factor, int64_t n, float* y) {
    for (int64_t i = 0; i < n; ++i) {
      y[i] = x[i] * factor;
    }
  }

  static void softcap(float* x, float limit, int64_t n) {
    F limits = S::set(limit);
    F inverse = S::set(1.0F / limit);
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) {
      S::store(x + i, limits * tanh_of<S>(S::load(x + i) * inverse));
    }
    if (i < n) {
      float rest[kWidth] = {};
      for (int64_t j = i; j < n; ++j) {
        rest[j - i] = x[j];
      }
      S::store(rest, limits * tanh_of<S>(S::load(rest) * inverse));
      for (int64_t j = i; j < n; ++j) {
        x[j] = rest[j - i];
      }
    }
  }

  static float largest(const float* x, int64_t n) {
    F best = S::set(x[0]);
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) {
      best = S::max(best, S::load(x + i));
    }
    float result = S::largest(best);
    for (; i < n; ++i) {
      result = x[i] > result ? x[i] : result;
    }
    return result;
  }

  // The first stretch that holds the largest value, then its place in it.
  static int64_t argmax(const float* x, int64_t n) {
    constexpr int64_t kStretch = 512;
    int64_t start = 0;
    float best = -__builtin_inff();
    for (int64_t at = 0; at < n; at += kStretch) {
      float found = largest(x + at, n - at < kStretch ? n - at : kStretch);
      if (found > best) {
        best = found;
        start = at;
      }
    }
    int64_t end = n - start < kStretch ? n : start + kStretch;
    for (int64_t i = start; i < end; ++i) {
      if (x[i] == best) {
        return i;
      }
    }
    return 0;
  }

  static constexpr RowKernels table() {
    return {rms_norm, layer_norm, add, multiply, softcap, argmax};
  }
};

}  // namespace mlxcel::backend::cpu
