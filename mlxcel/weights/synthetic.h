#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "mlxcel/weights/tensor_table.h"

namespace mlxcel {

/// Deterministic weights from tensor names: element i of a tensor is a
/// function of (name, seed, i) alone, so that any language can make the same
/// checkpoint (tests/golden/README.md has the definition; tests/golden/
/// synthetic.py is its twin). Values are uniform in [-scale, scale) and
/// exactly representable in bfloat16.
void fill_synthetic(
    std::string_view name, uint64_t seed, float scale, std::span<float> out
);

/// The value range of a tensor: 1/sqrt(columns)-like for matrices, around 1
/// for norm weights, small for biases.
struct SyntheticRange {
  float centre;
  float scale;
};
SyntheticRange synthetic_range(const TensorSpec& tensor);

struct SyntheticOptions {
  int bits = 0;  // 0: dense
  int group = 64;
  DType dtype = DType::bf16;  // of dense values, scales and biases
  uint64_t seed = 0;
};

/// Writes a random checkpoint (model.safetensors with an MLX-style header) of
/// the table to `directory`; config.json is the caller's.
void write_synthetic(
    const TensorTable& table,
    const std::string& directory,
    const SyntheticOptions& options
);

}  // namespace mlxcel
