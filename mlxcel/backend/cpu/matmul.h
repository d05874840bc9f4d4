#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "mlxcel/backend/backend.h"
#include "mlxcel/backend/cpu/isa.h"
#include "mlxcel/core/thread_pool.h"

namespace mlxcel::backend::cpu {

/// What activations are multiplied as. int8: per group of the weight's group
/// size, symmetric; float32: exact.
enum class ActivationMode { int8, float32 };

/// Kernels of one family give a row the same bits whatever the number of rows,
/// threads or neighbours.
enum class Family { prefill, decode };

struct LinearPlan;

/// Rows of activations that one pass over the weights serves at most; bounds
/// the scratch memory.
constexpr int64_t kMaxRows = 1024;

/// A weight group as views of its planes (any alignment) plus float32 biases.
class CpuLinear : public PreparedLinear {
 public:
  struct Part {
    WeightFormat format;
    int64_t rows = 0;
    int64_t first = 0;                  // first output column of the part
    const std::byte* codes = nullptr;   // [rows, cols * bits / 32] words
    const std::byte* scales = nullptr;  // [rows, cols / group]
    const std::byte* biases = nullptr;
    std::vector<float> bias;  // layer bias [rows] or empty
    LinearWeight source;      // keeps the bytes alive
  };
  std::vector<Part> parts;
  std::shared_ptr<const LinearPlan> plan;
};

/// Views of the group's planes; nothing is copied. Throws Error(unsupported)
/// naming the tensor for a format without kernels.
std::shared_ptr<const CpuLinear> make_cpu_linear(const WeightGroup& group);

/// What CpuBackend::supports() answers.
bool has_kernels(Operation operation, const WeightFormat& format);

struct MatmulEpilogue {
  std::optional<Activation> activation;
  std::optional<Activation> gate;   // two parts of equal rows
  const float* residual = nullptr;  // [rows of x, ld_residual]
  int64_t ld_residual = 0;
};

/// Scratch memory that grows to what the largest call needs and stays.
class MatmulScratch {
 public:
  MatmulScratch();
  ~MatmulScratch();
  MatmulScratch(const MatmulScratch&) = delete;
  MatmulScratch& operator=(const MatmulScratch&) = delete;
  struct Impl;
  Impl& impl() {
    return *impl_;
  }

 private:
  std::unique_ptr<Impl> impl_;
};

/// y[t, :] = epilogue(x[t, :] W^T + bias) for t in [0, count).
/// x [count, ldx] float32 with cols valid columns; y [count, ldy].
void linear(
    const CpuLinear& weight,
    const float* x,
    int64_t ldx,
    int64_t count,
    Family family,
    ActivationMode mode,
    Isa isa,
    const MatmulEpilogue& epilogue,
    float* y,
    int64_t ldy,
    MatmulScratch& scratch,
    ThreadPool& pool
);

/// Dequantised rows of a table: out [ids, cols] float32. Ids are in range.
void gather_rows(
    const LinearWeight& table, std::span<const int32_t> ids, float* out
);

}  // namespace mlxcel::backend::cpu
