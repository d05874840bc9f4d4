#include "mlxcel/backend/graph/linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "mlxcel/backend/graph/graph_backend.h"
#include "mlxcel/backend/graph/planes.h"
#include "mlxcel/core/error.h"

namespace mlxcel::backend::graph {

namespace {

mx::array gelu(const mx::array& x, mx::Stream s) {
  auto scalar = [&](double v) { return mx::array(v, x.dtype()); };
  mx::array erf =
      mx::erf(mx::multiply(x, scalar(1.0 / std::numbers::sqrt2), s), s);
  mx::array half = mx::multiply(x, scalar(0.5), s);
  return mx::multiply(half, mx::add(erf, scalar(1.0), s), s);
}

// Hendrycks and Gimpel, "Gaussian Error Linear Units", section 2.
mx::array gelu_tanh(const mx::array& x, mx::Stream s) {
  auto scalar = [&](double v) { return mx::array(v, x.dtype()); };
  mx::array cube = mx::multiply(mx::multiply(x, x, s), x, s);
  mx::array inner = mx::add(x, mx::multiply(cube, scalar(0.044715), s), s);
  mx::array tanh = mx::tanh(
      mx::multiply(inner, scalar(std::sqrt(2.0 / std::numbers::pi)), s), s
  );
  mx::array half = mx::multiply(x, scalar(0.5), s);
  return mx::multiply(half, mx::add(tanh, scalar(1.0), s), s);
}

// The caller gives the type that the product is computed in.
mx::array quantized_product(
    const Planes& planes, const mx::array& x, mx::Dtype type, mx::Stream s
) {
  // MLX would cast on the thread's default stream; here nothing is left to
  // cast.
  bool affine = planes.format.mode == QuantMode::affine;
  auto cast = [&](const mx::array& a) { return mx::astype(a, type, s); };
  std::optional<mx::array> biases;
  if (planes.biases) {
    biases = cast(*planes.biases);
  }
  return mx::quantized_matmul(
      cast(x),
      planes.codes,
      affine ? cast(*planes.scales) : *planes.scales,
      biases,
      true,
      planes.format.group,
      planes.format.bits,
      std::string(quant_mode_name(planes.format.mode)),
      s
  );
}

mx::array product(
    const GraphLinear::Part& part, const mx::array& x, bool wide, mx::Stream s
) {
  const Planes& planes = part.planes;
  mx::Dtype type = planes.format.mode == QuantMode::dense ||
                           planes.format.mode == QuantMode::affine
                       ? mx::promote_types(x.dtype(), planes.type)
                       : x.dtype();
  mx::array y(0);
  if (planes.format.mode == QuantMode::dense) {
    y = mx::matmul(x, mx::transpose(planes.codes, s), s);
  } else if (planes.format.bits == 1) {
    // MLX has no product for one bit.
    mx::array w = one_bit_values(
        planes.codes, *planes.scales, *planes.biases, planes.format.group, s
    );
    mx::array a = mx::astype(x, type, s);
    y = mx::matmul(a, mx::transpose(mx::astype(w, type, s), s), s);
  } else {
    mx::Dtype inner = wide ? mx::float32 : type;
    y = quantized_product(planes, x, inner, s);
    if (planes.global_scale != 1.0F) {
      y = mx::multiply(
          mx::astype(y, mx::float32, s), mx::array(planes.global_scale), s
      );
    }
    y = mx::astype(y, type, s);
  }
  if (part.bias) {
    y = mx::add(y, mx::astype(*part.bias, y.dtype(), s), s);
  }
  return y;
}

mx::array gated(
    Activation activation, const std::vector<mx::array>& parts, mx::Stream s
) {
  if (parts.size() == 2 && parts[0].shape() == parts[1].shape()) {
    return mx::multiply(activate(activation, parts[0], s), parts[1], s);
  }
  mx::array all = mx::concatenate(parts, 1, s);
  std::vector<mx::array> halves = mx::split(all, 2, 1, s);
  return mx::multiply(activate(activation, halves[0], s), halves[1], s);
}

const GraphLinear& prepared(const PreparedLinear& weight, const Tensor& x) {
  const auto* linear = dynamic_cast<const GraphLinear*>(&weight);
  if (linear == nullptr) {
    fail(
        ErrorCode::internal,
        "[graph] linear: the weight was prepared by another backend"
    );
  }
  if (x.cols() != linear->cols) {
    fail(
        ErrorCode::internal,
        fmt::format(
            "{}: input has {} columns, the weight {}",
            linear->parts[0].planes.path,
            x.cols(),
            linear->cols
        )
    );
  }
  return *linear;
}

}  // namespace

mx::array one_bit_values(
    const mx::array& codes,
    const mx::array& scales,
    const mx::array& biases,
    int group,
    mx::Stream s
) {
  mx::Shape shape = codes.shape();
  int cols = shape.back() * 32;
  mx::array word = mx::expand_dims(codes, -1, s);
  mx::array shifts = mx::arange(0, 32, mx::uint32, s);
  mx::array bits = mx::bitwise_and(
      mx::right_shift(word, shifts, s), mx::array(1U, mx::uint32), s
  );
  shape.back() = cols / group;
  shape.push_back(group);
  auto wide = [&](const mx::array& plane) {
    return mx::expand_dims(mx::astype(plane, mx::float32, s), -1, s);
  };
  mx::array values = mx::add(
      mx::multiply(
          mx::astype(mx::reshape(bits, shape, s), mx::float32, s),
          wide(scales),
          s
      ),
      wide(biases),
      s
  );
  shape.pop_back();
  shape.back() = cols;
  return mx::astype(mx::reshape(values, shape, s), scales.dtype(), s);
}

Planes make_planes(const LinearWeight& weight) {
  if (!is_mlx_format(weight.format)) {
    fail(
        ErrorCode::unsupported,
        fmt::format(
            "{}: the graph backend does not read {}",
            weight.path,
            weight.format.describe()
        )
    );
  }
  Planes planes;
  planes.path = weight.path;
  planes.format = weight.format;
  planes.global_scale = weight.global_scale;
  planes.codes = plane(weight.codes, weight.path + ".weight");
  if (weight.scales) {
    planes.scales = plane(*weight.scales, weight.path + ".scales");
  }
  if (weight.biases) {
    planes.biases = plane(*weight.biases, weight.path + ".biases");
  }
  switch (weight.format.mode) {
    case QuantMode::dense:
      planes.type = planes.codes.dtype();
      break;
    case QuantMode::affine:
      planes.type = planes.scales->dtype();
      break;
    default:
      planes.type = mx::bfloat16;
  }
  return planes;
}

mx::array activate(Activation activation, const mx::array& x, mx::Stream s) {
  switch (activation) {
    case Activation::silu:
      return mx::multiply(x, mx::sigmoid(x, s), s);
    case Activation::gelu:
      return gelu(x, s);
    case Activation::gelu_tanh:
      return gelu_tanh(x, s);
    case Activation::relu:
      return mx::maximum(x, mx::array(0.0F, x.dtype()), s);
  }
  fail(ErrorCode::internal, "[graph] activation: not a known function");
}

Planes GraphBackend::prepare_planes(const LinearWeight& weight) {
  Planes planes = make_planes(weight);
  auto widen = [&](mx::array& a, const char* plane) {
    a = mx::astype(a, mx::float32, stream_);
    pending_.push_back({weight.path + plane, a});
  };
  note_activation(planes.type);
  keep(weight);
  count(weight);
  if (planes.format.mode == QuantMode::dense && numerics_.exact) {
    widen(planes.codes, ".weight");
  }
  if (planes.format.mode == QuantMode::affine && wide_products()) {
    widen(*planes.scales, ".scales");
    widen(*planes.biases, ".biases");
  }
  if (numerics_.exact) {
    planes.type = mx::float32;
  }
  return planes;
}

std::shared_ptr<const PreparedLinear> GraphBackend::prepare_linear(
    const WeightGroup& group
) {
  auto linear = std::make_shared<GraphLinear>();
  linear->rows = group.rows();
  linear->cols = group.cols();
  for (const LinearWeight& weight : group.parts) {
    try {
      GraphLinear::Part part{prepare_planes(weight), std::nullopt};
      if (weight.bias) {
        part.bias = plane(*weight.bias, weight.path + ".bias");
      }
      linear->parts.push_back(std::move(part));
    } catch (...) {
      rethrow(weight.path);
    }
  }
  return linear;
}

Tensor GraphBackend::linear(
    const PreparedLinear& weight, const Tensor& x, const Epilogue& epilogue
) {
  const GraphLinear& linear = prepared(weight, x);
  const std::string& path = linear.parts[0].planes.path;
  try {
    std::vector<mx::array> outputs;
    for (const GraphLinear::Part& part : linear.parts) {
      outputs.push_back(product(part, array_of(x), wide_products(), stream_));
    }
    if (epilogue.gate) {
      return wrap(gated(*epilogue.gate, outputs, stream_));
    }
    mx::array y =
        outputs.size() == 1 ? outputs[0] : mx::concatenate(outputs, 1, stream_);
    if (epilogue.activation) {
      y = activate(*epilogue.activation, y, stream_);
    }
    if (epilogue.residual != nullptr) {
      y = mx::add(y, array_of(*epilogue.residual), stream_);
    }
    return wrap(y);
  } catch (...) {
    rethrow(path);
  }
}

Tensor GraphBackend::logits(
    const PreparedLinear& head, const Tensor& x, float scale, float softcap
) {
  Tensor product = linear(head, x, {});
  mx::array y = scaled(array_of(product), scale);
  if (softcap > 0) {
    y = scaled(mx::tanh(scaled(y, 1.0F / softcap), stream_), softcap);
  }
  return wrap(y);
}

}  // namespace mlxcel::backend::graph
