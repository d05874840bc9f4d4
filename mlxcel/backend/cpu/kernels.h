#pragma once

#include <cstdint>

#include "mlxcel/backend/cpu/attention_kernels.h"
#include "mlxcel/backend/cpu/isa.h"

namespace mlxcel::backend::cpu {

/// Operations on single rows of `n` values. A row's bits depend on nothing
/// else.
struct RowKernels {
  /// y = x / sqrt(mean(x^2) + epsilon) * weight (null: 1)
  void (*rms_norm
  )(const float* x, const float* weight, float epsilon, int64_t n, float* y);
  /// y = (x - mean) / sqrt(variance + epsilon) * weight + bias (null: 1, 0)
  void (*layer_norm
  )(const float* x,
    const float* weight,
    const float* bias,
    float epsilon,
    int64_t n,
    float* y);
  void (*add)(const float* a, const float* b, int64_t n, float* y);
  void (*multiply)(const float* x, float factor, int64_t n, float* y);
  /// x = limit * tanh(x / limit)
  void (*softcap)(float* x, float limit, int64_t n);
  /// Index of the largest value, the lowest on a tie.
  int64_t (*argmax)(const float* x, int64_t n);
};

struct Kernels {
  RowKernels row;
  AttentionKernels attention;
};

const Kernels& kernels(Isa isa);

// One definition per instruction set.
extern const RowKernels kGenericRowKernels;
extern const RowKernels kAvx2RowKernels;
extern const RowKernels kAvx512RowKernels;
extern const AttentionKernels kGenericAttentionKernels;
extern const AttentionKernels kAvx2AttentionKernels;
extern const AttentionKernels kAvx512AttentionKernels;

}  // namespace mlxcel::backend::cpu
