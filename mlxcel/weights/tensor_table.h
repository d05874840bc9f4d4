#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// How a tensor splits over devices.
enum class Split : uint8_t { replicated, rows, columns, heads, experts };

enum class TensorRole : uint8_t {
  matrix,  // quantisable: a linear layer's weight or an embedding [N, K]
  vector,  // never quantised: norms, biases
  unused,  // may be stored, is never read: a head beside a tied embedding
};

/// One tensor of a family: stated once, it drives binding, the list of missing
/// and unexpected tensors, memory estimates, `synth` and tests.
struct TensorSpec {
  std::string name;  // full, "model.layers.3.mlp.up_proj.weight"
  std::vector<int64_t> shape;
  TensorRole role = TensorRole::matrix;
  bool required = true;
  Split split = Split::replicated;
};

using TensorTable = std::vector<TensorSpec>;

/// How a checkpoint's tensors differ from its family's table.
struct TableDifference {
  std::vector<std::string> missing;     // required ones
  std::vector<std::string> unexpected;  // known to nobody, never read; sorted
};

/// Planes `.scales`, `.biases` and `.global_scale` belong to their `.weight`.
TableDifference compare_with_table(
    const TensorTable& table, const WeightMap& weights
);

/// Throws Error(not_found) listing every required tensor that is missing, and
/// logs the unexpected ones. Shapes are checked where the tensors are bound.
void check_tensors(const TensorTable& table, const WeightMap& weights);

}  // namespace mlxcel
