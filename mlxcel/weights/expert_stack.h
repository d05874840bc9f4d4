#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "mlxcel/weights/quantization.h"

namespace mlxcel {

/// The same matrix of all experts of a layer: planes of one format with an
/// axis of experts in front (weights-and-quantization.md 16).
struct ExpertStack {
  std::string path;  // "model.layers.0.mlp.switch_mlp.up_proj"
  int64_t experts = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  WeightFormat format;
  Weight codes;                  // [E, rows, cols] or [E, rows, words]
  std::optional<Weight> scales;  // [E, rows, cols / group]
  std::optional<Weight> biases;
  std::optional<Weight> bias;           // [E, rows]
  std::optional<Weight> global_scales;  // [E] F32, of nvfp4 (ModelOpt)

  /// The matrix of one expert, in place.
  LinearWeight expert(int64_t index) const;
};

/// Collects `<path>.weight|.scales|.biases|.bias|.global_scale` and checks them
/// as bind_linear() does for one expert. Throws Error naming the path: no such
/// tensor, another number of experts, planes that disagree, 1-bit codes.
ExpertStack bind_experts(
    const WeightMap& weights,
    const std::string& path,
    int64_t experts,
    int64_t rows,
    int64_t cols,
    const QuantConfig& quantization
);

}  // namespace mlxcel
