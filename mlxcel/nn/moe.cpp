#include "mlxcel/nn/moe.h"

namespace mlxcel::nn {

Moe::Moe(
    const MoeSpec& spec,
    int64_t width,
    int64_t layer,
    const TensorNames& names,
    const Binder& binder
)
    : activation_(spec.activation),
      routing_{spec.experts, spec.chosen, spec.normalize} {
  auto path = [&](const std::string& module) {
    return layer_path(names, layer, module);
  };
  auto stack = [&](const std::string& name, int64_t rows, int64_t cols) {
    return binder.experts(path(name), spec.experts, rows, cols);
  };
  router_ = binder.linear(path(names.router), spec.experts, width);
  experts_ = binder.backend().prepare_experts({
      layer,
      stack(names.expert_gate, spec.width, width),
      stack(names.expert_up, spec.width, width),
      stack(names.expert_down, width, spec.width),
  });
}

backend::Tensor Moe::forward(
    backend::Backend& backend,
    const backend::Tensor& x,
    const backend::Tensor& residual
) const {
  backend::Tensor scores = backend.linear(*router_, x, {.precise = true});
  auto routing = backend.route(scores, routing_);
  return backend.reduce(
      backend.experts(*experts_, *routing, x, activation_, residual)
  );
}

}  // namespace mlxcel::nn
