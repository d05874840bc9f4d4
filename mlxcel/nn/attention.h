#pragma once

#include <memory>
#include <string>

#include "mlxcel/backend/backend.h"
#include "mlxcel/nn/binder.h"
#include "mlxcel/nn/spec.h"
#include "mlxcel/nn/tensors.h"

namespace mlxcel::nn {

/// Softmax attention: q, k, v in one product, then the backend's attend, then
/// the output projection.
class Attention {
 public:
  Attention(
      const AttentionSpec& spec,
      int64_t width,
      int64_t layer,
      const TensorNames& names,
      const Binder& binder
  );

  /// Attention over `x`, before the output projection; extends the layer's
  /// state. [T, heads * head_dim]
  backend::Tensor attend(backend::Backend& backend, const backend::Tensor& x)
      const;
  /// Output projection of `mixed`, plus `residual`. [T, C]
  backend::Tensor project(
      backend::Backend& backend,
      const backend::Tensor& mixed,
      const backend::Tensor& residual
  ) const;

 private:
  std::shared_ptr<const backend::PreparedLinear> qkv_;
  std::shared_ptr<const backend::PreparedAttention> attention_;
  std::shared_ptr<const backend::PreparedLinear> output_;
};

}  // namespace mlxcel::nn
