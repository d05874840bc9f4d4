#pragma once

#include <string>
#include <vector>

#include "mlxcel/weights/convert/gguf/gguf_dequant.h"
#include "mlxcel/weights/convert/gguf/gguf_model.h"
#include "mlxcel/weights/safetensors_writer.h"

namespace mlxcel::convert {

enum class FloatType { f32, f16, bf16 };
/// "F32", "F16", "BF16".
const char* float_type_name(FloatType type);

/// In which form a tensor is written.
struct TensorTarget {
  int bits;        // of the codes of affine groups of 32; 0: dense
  FloatType type;  // of the dense values, or of scales and biases
};

/// Squares summed over a tensor: what was written against what was there.
struct ErrorSums {
  double error = 0;
  double value = 0;
};

/// Converts the tensors of one model with the threads of the process's pool.
class TensorConverter {
 public:
  /// Looks through the tensors and decides their targets. Throws
  /// Error(invalid_input) naming a tensor with a value that isn't finite.
  TensorConverter(const GgufFile& gguf, const ModelPlan& plan, bool dense);

  /// Of each tensor of the plan.
  const std::vector<TensorTarget>& targets() const {
    return targets_;
  }
  /// The type of most activations: of the dense tensors and the scales.
  FloatType activation_type() const {
    return activation_;
  }

  /// What tensor `index` of the plan becomes: one entry, or weight, scales and
  /// biases.
  std::vector<OutputTensor> entries(size_t index) const;
  /// Writes these entries.
  ErrorSums write(size_t index, SafetensorsWriter& writer) const;

 private:
  const std::byte* source_row(const TensorPlan& plan, int64_t row) const;
  [[noreturn]] void reject_row(const TensorPlan& plan, int64_t row) const;
  template <typename F>
  ErrorSums over_rows(
      const TensorPlan& plan, int64_t from, int64_t to, F&& row_sums
  ) const;

  bool all_values(
      const TensorPlan& plan,
      bool (*holds)(float value, FloatType type),
      FloatType type
  ) const;
  ErrorSums scan_affine(const TensorPlan& plan, FloatType type) const;
  FloatType scales_type(const TensorPlan& plan) const;
  void choose_activation_type();
  TensorTarget choose_target(const TensorPlan& plan, bool dense) const;

  ErrorSums write_dense(
      const TensorPlan& plan, FloatType type, SafetensorsWriter& writer
  ) const;
  ErrorSums write_affine(
      const TensorPlan& plan, FloatType type, SafetensorsWriter& writer
  ) const;

  const GgufFile& gguf_;
  const ModelPlan& plan_;
  FloatType activation_ = FloatType::f16;
  std::vector<TensorTarget> targets_;
};

}  // namespace mlxcel::convert
