#pragma once

#include <memory>

#include "mlxcel/backend/backend.h"
#include "mlxcel/nn/binder.h"
#include "mlxcel/nn/spec.h"
#include "mlxcel/nn/tensors.h"

namespace mlxcel::nn {

/// The gated feed-forward part: down(f(gate(x)) * up(x)).
class Mlp {
 public:
  Mlp(const MlpSpec& spec,
      int64_t width,
      int64_t layer,
      const TensorNames& names,
      const Binder& binder);

  /// The feed-forward part of `x`, plus `residual`. [T, C]
  backend::Tensor forward(
      backend::Backend& backend,
      const backend::Tensor& x,
      const backend::Tensor& residual
  ) const;

 private:
  backend::Activation activation_;
  std::shared_ptr<const backend::PreparedLinear> gate_up_;
  std::shared_ptr<const backend::PreparedLinear> down_;
};

}  // namespace mlxcel::nn
