#include "tests/unit/backend_graph/support/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace mlxcel::test {

using backend::Activation;
using backend::AttentionSpec;
using backend::HeadNorm;
using backend::NormKind;
using backend::RopeSpec;

namespace {

double dot(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

void normalise(
    double* x,
    int64_t dim,
    const std::optional<HeadNorm>& norm,
    std::span<const float> weight
) {
  if (!norm) {
    return;
  }
  double factor = 1.0 / std::sqrt(dot(x, x, dim) / dim + norm->epsilon);
  for (int64_t i = 0; i < dim; ++i) {
    x[i] *= factor * weight[i];
  }
}

void rotate(double* x, const std::optional<RopeSpec>& rope, int32_t position) {
  if (!rope) {
    return;
  }
  int64_t half = rope->dims / 2;
  for (int64_t i = 0; i < half; ++i) {
    double angle = position * double(rope->inverse_frequencies[i]);
    double c = std::cos(angle) * rope->amplitude;
    double s = std::sin(angle) * rope->amplitude;
    double& a = rope->interleaved ? x[2 * i] : x[i];
    double& b = rope->interleaved ? x[2 * i + 1] : x[i + half];
    double turned = a * c - b * s;
    b = a * s + b * c;
    a = turned;
  }
}

// Weights of the keys [first, last] for one query; `keys` has `stride` values
// per token.
Doubles softmax_scores(
    const double* query,
    const double* keys,
    int64_t stride,
    int64_t first,
    int64_t last,
    int64_t dim,
    double scale
) {
  Doubles scores;
  for (int64_t t = first; t <= last; ++t) {
    scores.push_back(scale * dot(query, keys + t * stride, dim));
  }
  double top = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) {
    score = std::exp(score - top);
    sum += score;
  }
  for (double& score : scores) {
    score /= sum;
  }
  return scores;
}

}  // namespace

Doubles reference_linear(
    std::span<const RandomMatrix> parts, std::span<const float> x
) {
  int64_t cols = parts[0].weight.cols;
  int64_t count = static_cast<int64_t>(x.size()) / cols;
  Doubles result;
  Doubles in(x.begin(), x.end());
  for (int64_t t = 0; t < count; ++t) {
    for (const RandomMatrix& part : parts) {
      for (int64_t n = 0; n < part.weight.rows; ++n) {
        double y = dot(&in[t * cols], &part.values[n * cols], cols);
        result.push_back(part.bias.empty() ? y : y + part.bias[n]);
      }
    }
  }
  return result;
}

double reference_activation(Activation activation, double x) {
  switch (activation) {
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::gelu:
      return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    case Activation::gelu_tanh:
      return 0.5 * x *
             (1 +
              std::tanh(
                  std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)
              ));
    case Activation::relu:
      return std::max(x, 0.0);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

Doubles reference_norm(
    NormKind kind,
    std::span<const float> x,
    int64_t cols,
    std::span<const float> weight,
    std::span<const float> bias,
    double epsilon
) {
  Doubles result(x.begin(), x.end());
  for (auto row = result.begin(); row != result.end(); row += cols) {
    if (kind == NormKind::layer) {
      double mean = 0;
      for (int64_t i = 0; i < cols; ++i) {
        mean += row[i] / cols;
      }
      std::for_each(row, row + cols, [&](double& v) { v -= mean; });
    }
    double factor = 1.0 / std::sqrt(dot(&*row, &*row, cols) / cols + epsilon);
    for (int64_t i = 0; i < cols; ++i) {
      row[i] *= factor * (weight.empty() ? 1.0 : weight[i]);
      row[i] += bias.empty() ? 0.0 : bias[i];
    }
  }
  return result;
}

Doubles reference_attention(
    const AttentionSpec& spec,
    std::span<const float> query_norm,
    std::span<const float> key_norm,
    std::span<const float> qkv,
    std::span<const int32_t> positions
) {
  int64_t stride = (spec.heads + spec.kv_heads) * spec.key_dim +
                   spec.kv_heads * spec.value_dim;
  auto tokens = static_cast<int64_t>(positions.size());
  Doubles x(qkv.begin(), qkv.end());
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t h = 0; h < spec.heads + spec.kv_heads; ++h) {
      double* head = &x[t * stride + h * spec.key_dim];
      bool query = h < spec.heads;
      normalise(
          head,
          spec.key_dim,
          query ? spec.query_norm : spec.key_norm,
          query ? query_norm : key_norm
      );
      rotate(head, spec.rope, positions[t]);
    }
  }
  Doubles result;
  for (int64_t t = 0; t < tokens; ++t) {
    int64_t first = spec.window > 0 ? std::max<int64_t>(0, t - spec.window + 1)
                                    : int64_t{0};
    for (int64_t h = 0; h < spec.heads; ++h) {
      int64_t kv = h / (spec.heads / spec.kv_heads);
      const double* keys = &x[(spec.heads + kv) * spec.key_dim];
      const double* values =
          &x[(spec.heads + spec.kv_heads) * spec.key_dim + kv * spec.value_dim];
      Doubles scores = softmax_scores(
          &x[t * stride + h * spec.key_dim],
          keys,
          stride,
          first,
          t,
          spec.key_dim,
          spec.scale
      );
      for (int64_t d = 0; d < spec.value_dim; ++d) {
        double sum = 0;
        for (int64_t u = first; u <= t; ++u) {
          sum += scores[u - first] * values[u * stride + d];
        }
        result.push_back(sum);
      }
    }
  }
  return result;
}

double relative_rms(std::span<const float> a, std::span<const double> b) {
  if (a.size() != b.size()) {
    return std::numeric_limits<double>::infinity();
  }
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

double relative_rms(std::span<const float> a, std::span<const float> b) {
  Doubles wide(b.begin(), b.end());
  return relative_rms(a, std::span<const double>(wide));
}

}  // namespace mlxcel::test
