#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "mlxcel/weights/quantization.h"
#include "mlxcel/weights/tensor_table.h"

namespace mlxcel {

/// The values of a tensor: centre + scale * u, u uniform in [-1, 1).
struct SyntheticRange {
  float centre;
  float scale;
};
/// By name and shape alone. Matrices: 0 and sqrt(3 / fan-in), which keeps the
/// variance of activations. Vectors: around 1 for the weights of norms, small
/// around 0 for names ending in ".bias".
SyntheticRange synthetic_range(const TensorSpec& tensor);

/// Deterministic weights from tensor names: element i is a function of (name,
/// seed, i) and the range alone, so that any language can make the same
/// checkpoint (tests/golden/README.md has the definition, tests/golden/
/// synthetic.py is its twin). Every value is representable in bfloat16.
void fill_synthetic(
    std::string_view name,
    uint64_t seed,
    const SyntheticRange& range,
    std::span<float> out
);

struct SyntheticOptions {
  int bits = 0;  // 0: dense
  int group = 64;
  DType dtype = DType::bf16;  // of dense values, affine scales and biases
  uint64_t seed = 0;
  QuantMode mode = QuantMode::affine;  // of what is quantised
};

/// Writes a random checkpoint of the table to `directory`, which must exist:
/// model.safetensors, in shards above 5 GiB, header and planes as MLX writes
/// them. With bits, the matrices whose columns are a multiple of the group are
/// quantised, the rest stays dense; config.json is the caller's. Runs on the
/// thread pool. Nothing is left behind after an Error.
void write_synthetic(
    const TensorTable& table,
    const std::string& directory,
    const SyntheticOptions& options
);

}  // namespace mlxcel
