#pragma once

#include "mlxcel/backend/cpu/matmul_kernels.h"

/// The epilogue over one set of vector functions (simd_*.h); included by the
/// file of each instruction set.
namespace mlxcel::backend::cpu {

template <class S>
struct Finish {
  using F = typename S::F;

  /// e^x within 2e-7 of it (relative) on [-87, 88]; 0 or e^88 beyond. The
  /// argument is reduced by multiples of log(2) in two steps (Cody and
  /// Waite); a degree 6 minimax fit of e^r for |r| <= log(2) / 2.
  static F exponential(F x) {
    x = S::max(S::set(-104.0F), x);
    x = -S::max(S::set(-88.0F), -x);
    F n = S::round(x * S::set(1.44269504F));
    F r = S::fma(n, S::set(-0.693145752F), x);
    r = S::fma(n, S::set(-1.42860677e-6F), r);
    F y = S::set(0.00138436068F);
    y = S::fma(y, r, S::set(0.00837419571F));
    y = S::fma(y, r, S::set(0.0416680047F));
    y = S::fma(y, r, S::set(0.166664308F));
    y = S::fma(y, r, S::set(0.499999942F));
    y = S::fma(y, r, S::set(1.00000003F));
    y = S::fma(y, r, S::set(1.0F));
    return S::scale(y, n);
  }

  /// e^(z^2) erfc(z) for z >= 0: a degree 9 minimax fit in 1 / (1 + 0.4 z),
  /// within 6e-8 of it (relative) up to z = 9.
  static F scaled_erfc(F z) {
    F t = S::set(1.0F) / S::fma(z, S::set(0.4F), S::set(1.0F));
    F y = S::set(0.0391359221F);
    y = S::fma(y, t, S::set(-0.129868348F));
    y = S::fma(y, t, S::set(0.0620302769F));
    y = S::fma(y, t, S::set(0.113545912F));
    y = S::fma(y, t, S::set(0.0617253976F));
    y = S::fma(y, t, S::set(0.201246165F));
    y = S::fma(y, t, S::set(0.199828947F));
    y = S::fma(y, t, S::set(0.226739455F));
    y = S::fma(y, t, S::set(0.225616326F));
    return y * t;
  }

  static F silu(F v) {
    return v / (S::set(1.0F) + exponential(-v));
  }

  /// v (1 + erf(v / sqrt 2)) / 2 = max(v, 0) - |v| erfc(|v| / sqrt 2) / 2
  static F gelu(F v) {
    F size = S::max(-v, v);
    F z = size * S::set(0.707106781F);
    F tail = exponential(-z * z) * scaled_erfc(z);
    return S::max(S::set(0.0F), v) - S::set(0.5F) * size * tail;
  }

  /// v (1 + tanh u) / 2 = v / (1 + e^(-2u))
  static F gelu_tanh(F v) {
    F u = S::fma(v * v * v, S::set(0.044715F), v);
    return v / (S::set(1.0F) + exponential(u * S::set(-1.59576912F)));
  }

  static F apply(Function function, F v) {
    switch (function) {
      case Function::none:
        return v;
      case Function::silu:
        return silu(v);
      case Function::gelu:
        return gelu(v);
      case Function::gelu_tanh:
        return gelu_tanh(v);
      case Function::relu:
        return S::max(S::set(0.0F), v);
    }
    return v;
  }

  static void run(const FinishJob& job) {
    for (int64_t t = 0; t < job.count; ++t) {
      Row row{
          at(job.a, t, job.ld),
          at(job.b, t, job.ld),
          job.bias_a,
          job.bias_b,
          at(job.residual, t, job.ld_residual)};
      float* out = job.out + t * job.ld_out;
      int64_t i = 0;
      for (; i + S::kWidth <= job.n; i += S::kWidth) {
        S::store(out + i, step(job.function, row, i));
      }
      if (i < job.n) {
        rest(job.function, row, i, job.n, out);
      }
    }
  }

 private:
  // Each but the first may be null.
  struct Row {
    const float* a;
    const float* b;
    const float* bias_a;
    const float* bias_b;
    const float* residual;
  };

  static const float* at(const float* matrix, int64_t row, int64_t ld) {
    return matrix != nullptr ? matrix + row * ld : nullptr;
  }

  /// One register's worth of values.
  static F step(Function function, const Row& row, int64_t i) {
    F v = S::load(row.a + i);
    if (row.bias_a != nullptr) {
      v = v + S::load(row.bias_a + i);
    }
    v = apply(function, v);
    if (row.b != nullptr) {
      F w = S::load(row.b + i);
      if (row.bias_b != nullptr) {
        w = w + S::load(row.bias_b + i);
      }
      v = v * w;
    }
    if (row.residual != nullptr) {
      v = v + S::load(row.residual + i);
    }
    return v;
  }

  /// Values [i, n), from buffers that may be read as a whole.
  static void rest(
      Function function, const Row& row, int64_t i, int64_t n, float* out
  ) {
    float memory[6][S::kWidth] = {};
    auto copy = [&](int to, const float* from) -> const float* {
      for (int64_t j = i; from != nullptr && j < n; ++j) {
        memory[to][j - i] = from[j];
      }
      return from != nullptr ? memory[to] : nullptr;
    };
    Row last{
        copy(0, row.a),
        copy(1, row.b),
        copy(2, row.bias_a),
        copy(3, row.bias_b),
        copy(4, row.residual)};
    S::store(memory[5], step(function, last, 0));
    for (int64_t j = i; j < n; ++j) {
      out[j] = memory[5][j - i];
    }
  }
};

}  // namespace mlxcel::backend::cpu
