#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mlxcel/weights/convert/checkpoint/recipe.h"
#include "mlxcel/weights/tensor_table.h"

namespace mlxcel {
class Json;
}

namespace mlxcel::convert {

enum class Action { keep, quantize, dequantize };

/// What a tensor of the output is made of, and its form.
struct PlannedTensor {
  /// Of the tensor; of what is quantised, that of its `.weight`.
  std::string name;
  std::vector<int64_t> shape;  // of the values
  /// Matrices whose rows follow each other; empty: `raw` is copied.
  std::vector<LinearWeight> parts;
  Weight raw;
  WeightFormat target;
  /// Its values in this type are what is quantised.
  DType value_type = DType::f32;
  /// The global scale of its planes goes into the new scales.
  bool folds_scale = false;
  /// Why a matrix isn't quantised that could be; "" if it is no question.
  std::string left_dense;

  /// `name` without ".weight".
  std::string path() const;
  WeightFormat source_format() const;
  int64_t rows() const;
  int64_t cols() const;
};

struct Plan {
  std::vector<PlannedTensor> tensors;
  std::vector<std::string> notes;
  /// What config.json declares; dense: nothing is quantised.
  LayerFormat declared{QuantMode::dense, 0, 0};
};

struct PlanRequest {
  const Json& config;
  Action action = Action::keep;
  QuantRecipe recipe;
  /// Of dense values and of affine scales; empty: as the config or, where it
  /// says nothing, the tensor has it.
  std::optional<DType> dtype;
  /// The family's tensors where they are known; empty: names and shapes tell
  /// which can be quantised.
  TensorTable table;
};

/// Decides the form of every tensor. Throws Error naming the tensor, or the
/// pattern of a rule that matches nothing.
Plan make_plan(WeightMap weights, const PlanRequest& request);

}  // namespace mlxcel::convert
