#include "mlxcel/nn/binder.h"

#include <fmt/format.h>

#include "mlxcel/core/error.h"

namespace mlxcel::nn {

LinearWeight Binder::matrix(
    const std::string& path, int64_t rows, int64_t cols, bool bias
) const {
  LinearWeight weight = bind_linear(weights_, path, rows, cols, quantization_);
  if (!bias) {
    weight.bias.reset();
  }
  return weight;
}

std::shared_ptr<const backend::PreparedLinear> Binder::linear(
    const std::string& path, int64_t rows, int64_t cols, bool bias
) const {
  return backend_.prepare_linear({{matrix(path, rows, cols, bias)}});
}

ExpertStack Binder::experts(
    const std::string& path, int64_t experts, int64_t rows, int64_t cols
) const {
  ExpertStack stack =
      bind_experts(weights_, path, experts, rows, cols, quantization_);
  stack.bias.reset();  // as with matrix()
  return stack;
}

BoundNorm Binder::norm(
    const std::string& path, const NormSpec& spec, int64_t width
) const {
  BoundNorm bound{spec, nullptr, nullptr};
  bound.weight = vector(path + ".weight", width, spec.weight_offset);
  if (spec.kind == backend::NormKind::layer) {
    bound.bias = vector(path + ".bias", width, 0.0F);
  }
  return bound;
}

std::shared_ptr<const backend::PreparedVector> Binder::vector(
    const std::string& name, int64_t width, float offset
) const {
  const Weight& weight = weights_.at(name);
  if (weight.shape != std::vector<int64_t>{width} ||
      !is_weight_float(weight.dtype)) {
    fail(
        ErrorCode::invalid_input,
        fmt::format(
            "[weights] {}: expected [{}] F32, F16 or BF16, got {} (in {})",
            name,
            width,
            weight.describe(),
            weights_.origin
        )
    );
  }
  return backend_.prepare_vector(weight, offset);
}

}  // namespace mlxcel::nn
