#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mlx/mlx.h"
#include "mlxcel/backend/backend.h"

namespace mlxcel::backend::graph {

namespace mx = mlx::core;

/// The planes of one matrix as arrays.
struct Planes {
  std::string path;
  WeightFormat format;
  /// What activations become next to this matrix: the type of dense values or
  /// of affine scales, bfloat16 for the block-float modes.
  mx::Dtype type = mx::float32;
  mx::array codes{0};  // dense values or packed words
  std::optional<mx::array> scales;
  std::optional<mx::array> biases;
  float global_scale = 1.0F;  // of nvfp4 planes
};

/// Throws Error(unsupported) naming the matrix unless is_mlx_format().
Planes make_planes(const LinearWeight& weight);

/// Values of 1-bit codes [..., cols / 32], in the type of the scales: scale
/// and bias are added in float32 and rounded once.
mx::array one_bit_values(
    const mx::array& codes,
    const mx::array& scales,
    const mx::array& biases,
    int group,
    mx::Stream s
);

/// f(x), in plain operations.
mx::array activate(Activation activation, const mx::array& x, mx::Stream s);

class GraphLinear final : public PreparedLinear {
 public:
  struct Part {
    Planes planes;
    std::optional<mx::array> bias;  // [rows]
  };
  std::vector<Part> parts;
};

}  // namespace mlxcel::backend::graph
