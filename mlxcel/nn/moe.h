#pragma once

#include <memory>

#include "mlxcel/backend/backend.h"
#include "mlxcel/nn/binder.h"
#include "mlxcel/nn/spec.h"
#include "mlxcel/nn/tensors.h"

namespace mlxcel::nn {

/// The feed-forward part of a mixture of experts: a router chooses for each
/// token some of many gated parts and adds them up.
class Moe {
 public:
  Moe(const MoeSpec& spec,
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
  backend::RouterSpec routing_;
  std::shared_ptr<const backend::PreparedLinear> router_;
  std::shared_ptr<const backend::PreparedExperts> experts_;
};

}  // namespace mlxcel::nn
