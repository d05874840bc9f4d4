#include <fmt/format.h>

#include "mlxcel/backend/graph/graph_backend.h"
#include "mlxcel/backend/graph/linear.h"
#include "mlxcel/backend/graph/planes.h"
#include "mlxcel/core/error.h"

namespace mlxcel::backend::graph {

namespace {

struct Stack {
  Planes planes;                           // with an axis of experts in front
  std::optional<mx::array> global_scales;  // [E]
};

class GraphExperts final : public PreparedExperts {
 public:
  GraphExperts(Stack g, Stack u, Stack d)
      : gate(std::move(g)), up(std::move(u)), down(std::move(d)) {}
  Stack gate;
  Stack up;
  Stack down;
};

class GraphRouting final : public Routing {
 public:
  GraphRouting(mx::array chosen_ids, mx::array chosen_weights)
      : ids(std::move(chosen_ids)), weights(std::move(chosen_weights)) {}
  mx::array ids;      // [T, chosen] uint32
  mx::array weights;  // [T, chosen] float32
};

// The stack as if it were one matrix, for the planes.
LinearWeight as_matrix(const ExpertStack& stack) {
  LinearWeight weight;
  weight.path = stack.path;
  weight.rows = stack.rows;
  weight.cols = stack.cols;
  weight.format = stack.format;
  weight.codes = stack.codes;
  weight.scales = stack.scales;
  weight.biases = stack.biases;
  return weight;
}

// x [T, n, 1, C] times the chosen experts' matrices: [T, k, 1, rows].
mx::array gathered_product(
    const Stack& stack,
    const mx::array& x,
    const mx::array& ids,
    bool wide,
    mx::Stream s
) {
  const Planes& planes = stack.planes;
  QuantMode mode = planes.format.mode;
  bool typed = mode == QuantMode::dense || mode == QuantMode::affine;
  mx::Dtype type =
      typed ? mx::promote_types(x.dtype(), planes.type) : x.dtype();
  mx::Dtype inner = wide ? mx::float32 : type;
  auto cast = [&](const mx::array& a) { return mx::astype(a, inner, s); };
  if (mode == QuantMode::dense) {
    mx::array w = mx::swapaxes(cast(planes.codes), -1, -2, s);
    mx::array y = mx::gather_mm(cast(x), w, std::nullopt, ids, false, s);
    return mx::astype(y, type, s);
  }
  bool affine = mode == QuantMode::affine;
  std::optional<mx::array> biases;
  if (planes.biases) {
    biases = cast(*planes.biases);
  }
  mx::array y = mx::gather_qmm(
      cast(x),
      planes.codes,
      affine ? cast(*planes.scales) : *planes.scales,
      biases,
      std::nullopt,
      ids,
      true,
      planes.format.group,
      planes.format.bits,
      std::string(quant_mode_name(mode)),
      std::nullopt,
      false,
      s
  );
  if (stack.global_scales) {
    mx::array factors = mx::take(*stack.global_scales, ids, 0, s);
    factors = mx::expand_dims(factors, std::vector<int>{-2, -1}, s);
    y = mx::multiply(mx::astype(y, mx::float32, s), factors, s);
  }
  return mx::astype(y, type, s);
}

}  // namespace

std::shared_ptr<const PreparedExperts> GraphBackend::prepare_experts(
    const ExpertGroup& group
) {
  auto prepare = [&](const ExpertStack& stack) {
    if (!supports(Operation::experts, stack.format)) {
      fail(
          ErrorCode::unsupported,
          fmt::format(
              "{}: the graph backend has no experts of {}",
              stack.path,
              stack.format.describe()
          )
      );
    }
    try {
      Stack ready{prepare_planes(as_matrix(stack)), std::nullopt};
      if (stack.global_scales) {
        ready.global_scales = mx::reshape(
            plane(*stack.global_scales, stack.path + ".global_scale"),
            {static_cast<int>(stack.experts)},
            stream_
        );
      }
      return ready;
    } catch (...) {
      rethrow(stack.path);
    }
  };
  auto experts = std::make_shared<GraphExperts>(
      prepare(group.gate), prepare(group.up), prepare(group.down)
  );
  experts->experts = group.gate.experts;
  experts->inner = group.gate.rows;
  experts->width = group.gate.cols;
  return experts;
}

std::shared_ptr<const Routing> GraphBackend::route(
    const Tensor& scores, const RouterSpec& spec
) {
  try {
    mx::array logits = mx::astype(array_of(scores), mx::float32, stream_);
    mx::array all = mx::softmax(logits, -1, true, stream_);
    int rows = all.shape(0);
    int chosen = static_cast<int>(spec.chosen);
    mx::array order = mx::argsort(mx::negative(all, stream_), -1, stream_);
    mx::array ids = mx::slice(order, {0, 0}, {rows, chosen}, {1, 1}, stream_);
    mx::array weights = mx::take_along_axis(all, ids, -1, stream_);
    if (spec.normalize) {
      weights =
          mx::divide(weights, mx::sum(weights, -1, true, stream_), stream_);
    }
    auto routing = std::make_shared<GraphRouting>(ids, weights);
    routing->rows = rows;
    routing->chosen = spec.chosen;
    return routing;
  } catch (...) {
    rethrow("[graph] route");
  }
}

Tensor GraphBackend::experts(
    const PreparedExperts& group,
    const Routing& routing,
    const Tensor& x,
    Activation activation,
    const Tensor& residual
) {
  const auto& ready = static_cast<const GraphExperts&>(group);
  const auto& route = static_cast<const GraphRouting&>(routing);
  try {
    bool wide = wide_products();
    mx::array rows =
        mx::expand_dims(array_of(x), std::vector<int>{-2, -3}, stream_);
    auto product = [&](const Stack& stack, const mx::array& in) {
      return gathered_product(stack, in, route.ids, wide, stream_);
    };
    mx::array inner = mx::multiply(
        activate(activation, product(ready.gate, rows), stream_),
        product(ready.up, rows),
        stream_
    );
    mx::array out = mx::squeeze(product(ready.down, inner), -2, stream_);
    mx::array weighted = mx::multiply(
        mx::astype(out, mx::float32, stream_),
        mx::expand_dims(route.weights, -1, stream_),
        stream_
    );
    mx::array y =
        mx::astype(mx::sum(weighted, -2, false, stream_), out.dtype(), stream_);
    return wrap(mx::add(y, array_of(residual), stream_));
  } catch (...) {
    rethrow(ready.gate.planes.path);
  }
}

}  // namespace mlxcel::backend::graph
