#pragma once

#include <string>
#include <vector>

#include "mlxcel/weights/convert/checkpoint/quantizable.h"
#include "mlxcel/weights/quantization.h"

namespace mlxcel::convert {

/// Values of a tensor in whichever format: matrices that follow each other.
struct SourceMatrix {
  std::string name;
  std::vector<int64_t> shape;  // of the values
  std::vector<LinearWeight> parts;
};

/// Takes every tensor of floats and every set of quantised planes out of the
/// map; what is left has other types. `<root>.experts.<i>.<proj>.weight` for
/// gate_proj, up_proj and down_proj become one `<root>.switch_mlp.<proj>
/// .weight` [experts, rows, columns], as mlx-lm has them.
/// Throws what bind_linear() throws, and Error(invalid_input) naming an expert
/// that is missing or differs.
std::vector<SourceMatrix> collect_matrices(
    WeightMap& weights,
    const QuantConfig& quantization,
    const Quantizable& quantizable
);

}  // namespace mlxcel::convert
