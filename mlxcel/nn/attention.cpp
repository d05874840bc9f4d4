#include "mlxcel/nn/attention.h"

namespace mlxcel::nn {

Attention::Attention(
    const AttentionSpec& spec,
    int64_t width,
    int64_t layer,
    const TensorNames& names,
    const Binder& binder
) {
  auto path = [&](const std::string& module) {
    return layer_path(names, layer, module);
  };
  int64_t queries = spec.heads * spec.head_dim;
  int64_t keys = spec.kv_heads * spec.head_dim;
  qkv_ = binder.backend().prepare_linear({{
      binder.matrix(path(names.query), queries, width, spec.qkv_bias),
      binder.matrix(path(names.key), keys, width, spec.qkv_bias),
      binder.matrix(path(names.value), keys, width, spec.qkv_bias),
  }});
  output_ = binder.linear(path(names.output), width, queries, spec.output_bias);

  backend::AttentionSpec device;
  device.layer = layer;
  device.heads = spec.heads;
  device.kv_heads = spec.kv_heads;
  device.key_dim = spec.head_dim;
  device.value_dim = spec.head_dim;
  device.scale = spec.scale;
  device.window = spec.window;
  device.rope = spec.rope;
  if (spec.head_norm) {
    auto norm = [&](const std::string& module) {
      BoundNorm bound =
          binder.norm(path(module), *spec.head_norm, spec.head_dim);
      return backend::HeadNorm{bound.weight, bound.spec.epsilon};
    };
    device.query_norm = norm(names.query_norm);
    device.key_norm = norm(names.key_norm);
  }
  attention_ = binder.backend().prepare_attention(device);
}

backend::Tensor Attention::attend(
    backend::Backend& backend, const backend::Tensor& x
) const {
  return backend.attend(*attention_, backend.linear(*qkv_, x, {}));
}

backend::Tensor Attention::project(
    backend::Backend& backend,
    const backend::Tensor& mixed,
    const backend::Tensor& residual
) const {
  backend::Epilogue add{.residual = &residual};
  return backend.reduce(backend.linear(*output_, mixed, add));
}

}  // namespace mlxcel::nn
