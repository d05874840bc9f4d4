#pragma once

#include <memory>
#include <vector>

#include "mlxcel/backend/backend.h"
#include "mlxcel/nn/spec.h"
#include "mlxcel/nn/tensors.h"
#include "mlxcel/weights/quantization.h"
#include "mlxcel/weights/weight_map.h"

namespace mlxcel::nn {

class Layer;

/// A decoder bound to its weights on one backend: runs a DecoderSpec.
class Decoder {
 public:
  /// Binds every tensor that the spec asks for. Throws Error naming missing
  /// tensors and wrong shapes.
  Decoder(
      const DecoderSpec& spec,
      const TensorNames& names,
      const WeightMap& weights,
      const QuantConfig& quantization,
      std::shared_ptr<backend::Backend> backend
  );
  ~Decoder();

  const DecoderSpec& spec() const {
    return spec_;
  }
  backend::Backend& backend() const {
    return *backend_;
  }
  /// What a sequence keeps, layer by layer.
  backend::StateLayout state_layout() const;

  /// Runs the step that the backend has begun and gives the logits of its
  /// logit rows. [R, V]
  backend::Tensor forward() const;

 private:
  DecoderSpec spec_;
  std::shared_ptr<backend::Backend> backend_;
  std::shared_ptr<const backend::EmbeddingSource> embedding_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::shared_ptr<const backend::PreparedVector> final_norm_;
  std::shared_ptr<const backend::PreparedVector> final_norm_bias_;
  std::shared_ptr<const backend::PreparedLinear> head_;
};

}  // namespace mlxcel::nn
