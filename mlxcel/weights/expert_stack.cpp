#include "mlxcel/weights/expert_stack.h"

#include <fmt/format.h>

#include "mlxcel/core/error.h"
#include "mlxcel/weights/weight_slice.h"

namespace mlxcel {

namespace {

[[noreturn]] void reject(
    const std::string& name, const Weight& weight, const std::string& expected
) {
  fail(
      ErrorCode::invalid_input,
      fmt::format(
          "[experts] {}: expected {}, got {} (in {})",
          name,
          expected,
          weight.describe(),
          weight.source->origin()
      )
  );
}

std::optional<Weight> optional_plane(
    const WeightMap& weights, const std::string& name, int64_t experts
) {
  const Weight* found = weights.find(name);
  if (found == nullptr) {
    return std::nullopt;
  }
  if (found->shape.empty() || found->shape[0] != experts) {
    reject(name, *found, fmt::format("the planes of {} experts", experts));
  }
  return *found;
}

void put_first(
    WeightMap& one, const std::string& name, const std::optional<Weight>& plane
) {
  if (plane) {
    one.insert(name, element_of(*plane, 0));
  }
}

}  // namespace

LinearWeight ExpertStack::expert(int64_t index) const {
  LinearWeight weight;
  weight.path = fmt::format("{}.{}", path, index);
  weight.rows = rows;
  weight.cols = cols;
  weight.format = format;
  weight.codes = element_of(codes, index);
  auto take = [&](const std::optional<Weight>& from,
                  std::optional<Weight>& to) {
    if (from) {
      to = element_of(*from, index);
    }
  };
  take(scales, weight.scales);
  take(biases, weight.biases);
  take(bias, weight.bias);
  if (global_scales) {
    weight.global_scale = to_float(element_of(*global_scales, index)).front();
  }
  return weight;
}

ExpertStack bind_experts(
    const WeightMap& weights,
    const std::string& path,
    int64_t experts,
    int64_t rows,
    int64_t cols,
    const QuantConfig& quantization
) {
  ExpertStack stack;
  stack.path = path;
  stack.experts = experts;
  stack.rows = rows;
  stack.cols = cols;
  stack.codes = weights.at(path + ".weight");
  if (stack.codes.shape.size() != 3 || stack.codes.shape[0] != experts ||
      stack.codes.shape[2] == 0) {
    reject(
        path + ".weight",
        stack.codes,
        fmt::format("[{}, {}, {}] or packed words of it", experts, rows, cols)
    );
  }
  stack.scales = optional_plane(weights, path + ".scales", experts);
  stack.biases = optional_plane(weights, path + ".biases", experts);
  stack.bias = optional_plane(weights, path + ".bias", experts);
  stack.global_scales =
      optional_plane(weights, path + ".global_scale", experts);
  // All experts have the shapes of the first.
  WeightMap one;
  one.origin = weights.origin;
  one.insert(path + ".weight", element_of(stack.codes, 0));
  put_first(one, path + ".scales", stack.scales);
  put_first(one, path + ".biases", stack.biases);
  put_first(one, path + ".bias", stack.bias);
  stack.format = bind_linear(one, path, rows, cols, quantization).format;
  if (stack.format.mode == QuantMode::affine && stack.format.bits == 1) {
    fail(
        ErrorCode::unsupported,
        fmt::format(
            "[experts] {}: 1-bit stacks of experts are not supported (in {})",
            path,
            stack.codes.source->origin()
        )
    );
  }
  if (stack.global_scales && (stack.format.mode != QuantMode::nvfp4 ||
                              stack.global_scales->dtype != DType::f32 ||
                              stack.global_scales->shape.size() > 2 ||
                              stack.global_scales->elements() != experts)) {
    reject(
        path + ".global_scale",
        *stack.global_scales,
        fmt::format("[{}] F32 beside nvfp4 planes", experts)
    );
  }
  return stack;
}

}  // namespace mlxcel
