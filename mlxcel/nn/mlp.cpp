#include "mlxcel/nn/mlp.h"

namespace mlxcel::nn {

Mlp::Mlp(
    const MlpSpec& spec,
    int64_t width,
    int64_t layer,
    const TensorNames& names,
    const Binder& binder
)
    : activation_(spec.activation) {
  auto path = [&](const std::string& module) {
    return layer_path(names, layer, module);
  };
  gate_up_ = binder.backend().prepare_linear({{
      binder.matrix(path(names.gate), spec.width, width, spec.bias),
      binder.matrix(path(names.up), spec.width, width, spec.bias),
  }});
  down_ = binder.linear(path(names.down), width, spec.width, spec.bias);
}

backend::Tensor Mlp::forward(
    backend::Backend& backend,
    const backend::Tensor& x,
    const backend::Tensor& residual
) const {
  backend::Epilogue gate{.gate = activation_};
  backend::Tensor inner = backend.linear(*gate_up_, x, gate);
  backend::Epilogue add{.residual = &residual};
  return backend.reduce(backend.linear(*down_, inner, add));
}

}  // namespace mlxcel::nn
