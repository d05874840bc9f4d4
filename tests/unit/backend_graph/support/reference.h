#pragma once

#include <span>
#include <vector>

#include "mlxcel/backend/backend.h"
#include "tests/unit/backend_graph/support/random_weights.h"

namespace mlxcel::test {

using Doubles = std::vector<double>;

/// x [count, cols] times the matrices, one after another in each row, plus
/// their biases, in double.
Doubles reference_linear(
    std::span<const RandomMatrix> parts, std::span<const float> x
);
double reference_activation(backend::Activation activation, double x);

/// Weight and bias may be empty.
Doubles reference_norm(
    backend::NormKind kind,
    std::span<const float> x,
    int64_t cols,
    std::span<const float> weight,
    std::span<const float> bias,
    double epsilon
);

/// Attention of one whole sequence from nothing: row t of `qkv` has the rotary
/// position positions[t] and sees rows 0 .. t. Head norms are given as their
/// weights or empty. [T, heads * value_dim]
Doubles reference_attention(
    const backend::AttentionSpec& spec,
    std::span<const float> query_norm,
    std::span<const float> key_norm,
    std::span<const float> qkv,
    std::span<const int32_t> positions
);

/// Root mean square of a - b over that of b.
double relative_rms(std::span<const float> a, std::span<const double> b);
double relative_rms(std::span<const float> a, std::span<const float> b);

}  // namespace mlxcel::test
