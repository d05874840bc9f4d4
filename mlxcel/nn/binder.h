#pragma once

#include <memory>
#include <string>

#include "mlxcel/backend/backend.h"
#include "mlxcel/nn/spec.h"
#include "mlxcel/weights/expert_stack.h"
#include "mlxcel/weights/quantization.h"
#include "mlxcel/weights/weight_map.h"

namespace mlxcel::nn {

/// A norm's prepared weight and, for layer norm, bias.
struct BoundNorm {
  NormSpec spec;
  std::shared_ptr<const backend::PreparedVector> weight;
  std::shared_ptr<const backend::PreparedVector> bias;

  /// [T, C] -> [T, C]
  backend::Tensor operator()(
      backend::Backend& backend, const backend::Tensor& x
  ) const {
    return backend.norm(spec.kind, x, weight.get(), bias.get(), spec.epsilon);
  }
};

/// Takes a layer's tensors out of the weight map and has the backend prepare
/// them: constructing a layer is loading it.
class Binder {
 public:
  Binder(
      const WeightMap& weights,
      const QuantConfig& quantization,
      backend::Backend& backend
  )
      : weights_(weights), quantization_(quantization), backend_(backend) {}

  backend::Backend& backend() const {
    return backend_;
  }
  /// `bias`: whether the layer has one. A stored bias that the config denies
  /// is left alone, as the official implementations do.
  LinearWeight matrix(
      const std::string& path, int64_t rows, int64_t cols, bool bias = false
  ) const;
  std::shared_ptr<const backend::PreparedLinear> linear(
      const std::string& path, int64_t rows, int64_t cols, bool bias = false
  ) const;
  /// `<path>.weight` [experts, rows, cols] and its planes.
  ExpertStack experts(
      const std::string& path, int64_t experts, int64_t rows, int64_t cols
  ) const;
  /// `<path>.weight` (and `.bias`) of shape [width].
  BoundNorm norm(const std::string& path, const NormSpec& spec, int64_t width)
      const;

 private:
  std::shared_ptr<const backend::PreparedVector> vector(
      const std::string& name, int64_t width, float offset
  ) const;

  const WeightMap& weights_;
  const QuantConfig& quantization_;
  backend::Backend& backend_;
};

}  // namespace mlxcel::nn
