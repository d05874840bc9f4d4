#pragma once

#include <cstddef>
#include <cstdint>

#include "mlxcel/backend/cpu/isa.h"

/// What one instruction set contributes to `linear` and `gather_rows`: plain
/// functions on plain views. Files that are compiled for an instruction set
/// include this and nothing of the standard library that has code in it, so
/// that no such code ends up in a function that other processors run.
namespace mlxcel::backend::cpu {

enum class ScaleType : uint8_t { f32, f16, bf16, e8m0, e4m3 };

/// What a code stands for: itself, times a scale plus a bias, or a small
/// float, times a scale (OCP Microscaling Formats 1.0).
enum class Coding : uint8_t { affine, e2m1, e4m3 };

/// How the rows of a matrix are stored. Quantised (bits > 0): `type` is that
/// of scales and biases; small floats have no biases. Dense (bits 0): of the
/// values.
struct RowFormat {
  ScaleType type;
  Coding coding;
  int bits;
  int group;
  int64_t cols;
  int64_t code_bytes;   // of a row
  int64_t scale_bytes;  // of a row's scales
  float factor;         // of the scales of small floats
};

/// Consecutive rows of a matrix, at any alignment.
struct RowSpan {
  const std::byte* codes;
  const std::byte* scales;
  const std::byte* biases;
  int64_t rows;
  float* out;  // [count, ld_out], column i is row i of the span
  int64_t ld_out;
};

/// Order of the int8 activations of a row. `natural`: as they are.
/// `split64`, `split128`: of each 64 (128) first those with an even index,
/// then those with an odd one, as the halves of a packed byte want them.
enum class Order : uint8_t { natural, split64, split128 };

/// Rows of activations in groups of g: x[i] is about scale[i / g] * q[i], and
/// sum[j] is scale[j] times the sum of q over group j. Rows are padded with
/// zeros: q to a multiple of 256, scale and sum to a multiple of 16.
struct Int8Rows {
  const int8_t* q;
  const float* scale;
  const float* sum;
  int64_t ld_q;
  int64_t ld_scale;
};

constexpr int64_t padded_codes(int64_t cols) {
  return (cols + 255) / 256 * 256;
}
constexpr int64_t padded_scales(int64_t groups) {
  return (groups + 15) / 16 * 16;
}

/// E2M1 codes u (block_float.h) are multiplied as if they were affine ones,
/// with half the group's scale s and the bias -12 s / 2.
/// Rows of a panel that is unpacked once for many rows of activations.
constexpr int64_t kPanelRows = 16;
/// Columns unpacked at a time: a multiple of every group.
constexpr int64_t kPanelCols = 2048;

/// The unpacked codes of kPanelRows rows and up to kPanelCols columns. A panel
/// for int8: bytes or int16 in an order of the kernel's own; scales and biases
/// [groups, kPanelRows]. For float32: values [cols, kPanelRows].
struct Panel {
  void* codes;
  float* scales;
  float* biases;
};

enum class Function : uint8_t { none, silu, gelu, gelu_tanh, relu };

/// out = f(a + bias_a) * (b + bias_b) + residual for `count` rows of `n`
/// values; every pointer but out and a may be null. Biases are rows.
struct FinishJob {
  Function function;
  int64_t count;
  int64_t n;
  const float* a;
  const float* b;
  int64_t ld;  // of a and b
  const float* bias_a;
  const float* bias_b;
  const float* residual;
  int64_t ld_residual;
  float* out;
  int64_t ld_out;
};

struct MatmulKernels {
  /// One row of x [cols] to q, scale and sum, padding included.
  void (*quantize
  )(const float* x,
    int64_t cols,
    int group,
    Order order,
    int8_t* q,
    float* scale,
    float* sum);
  /// The order in which decode_int8 wants the activations.
  Order (*decode_order)(int bits);
  /// Rows of two spans (the second may have none) times `count` rows of
  /// activations. `scratch` has room for `decode_scratch` bytes.
  void (*decode_int8
  )(const RowFormat& format,
    const RowSpan* spans,
    const Int8Rows& x,
    int64_t count,
    std::byte* scratch);
  /// The same with float32 activations [count, ldx], for dense and quantised.
  void (*decode_float
  )(const RowFormat& format,
    const RowSpan* spans,
    const float* x,
    int64_t ldx,
    int64_t count,
    std::byte* scratch);
  /// Unpacks columns [begin, begin + cols) of the rows of `span` (1 to
  /// kPanelRows of them; absent ones repeat the last).
  void (*pack_int8
  )(const RowFormat& format,
    const RowSpan& span,
    int64_t begin,
    int64_t cols,
    const Panel& panel,
    std::byte* scratch);
  /// tile[t, 0 .. kPanelRows * panels) for t in [0, count) is set to
  /// (`first`) or increased by the product of the panels' columns. x points
  /// to the first column and group.
  void (*multiply_int8
  )(const RowFormat& format,
    const Panel* panels,
    int count_panels,
    int64_t cols,
    const Int8Rows& x,
    int64_t count,
    bool first,
    float* tile,
    int64_t ld_tile);
  void (*pack_float
  )(const RowFormat& format,
    const RowSpan& span,
    int64_t begin,
    int64_t cols,
    const Panel& panel,
    std::byte* scratch);
  void (*multiply_float
  )(const Panel* panels,
    int count_panels,
    int64_t cols,
    const float* x,
    int64_t ldx,
    int64_t count,
    bool first,
    float* tile,
    int64_t ld_tile);
  /// Columns [begin, begin + cols) of one row as float32; begin and cols are
  /// multiples of 32 (of the group if that is smaller) unless the format is
  /// dense.
  void (*dequantize
  )(const RowFormat& format,
    const RowSpan& row,
    int64_t begin,
    int64_t cols,
    float* out);
  void (*finish)(const FinishJob& job);
};

/// Bytes that the kernels want as scratch for rows of `cols` columns.
constexpr int64_t kernel_scratch(int64_t cols) {
  return 4 * (padded_codes(cols) * 4 + 4 * padded_scales(cols / 16) + 256);
}

const MatmulKernels& generic_matmul_kernels();
#if defined(__x86_64__)
const MatmulKernels& avx2_matmul_kernels();
const MatmulKernels& avx512_matmul_kernels();
#endif
const MatmulKernels& matmul_kernels(Isa isa);

}  // namespace mlxcel::backend::cpu
