#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "mlxcel/weights/convert/gguf/gguf_model.h"

namespace mlxcel::convert {

namespace {

constexpr double kTolerance = 1e-4;

// Rotations that the original context holds, per dimension and unit of
// context: frequency / 2 pi.
double rotations(size_t i, size_t count, double theta) {
  return std::pow(theta, -static_cast<double>(i) / static_cast<double>(count)) /
         (2 * std::numbers::pi);
}

// transformers, modeling_rope_utils.py, _compute_llama3_parameters, as the
// factor that divides a frequency.
double llama3_factor(const RopeScaling& scaling, double turns) {
  double x = turns * static_cast<double>(*scaling.original_context);
  if (x > *scaling.high_freq_factor) {
    return 1;
  }
  if (x < *scaling.low_freq_factor) {
    return scaling.factor;
  }
  double smooth = (x - *scaling.low_freq_factor) /
                  (*scaling.high_freq_factor - *scaling.low_freq_factor);
  return 1 / ((1 - smooth) / scaling.factor + smooth);
}

bool fits(
    const RopeScaling& scaling, const std::vector<float>& factors, double theta
) {
  for (size_t i = 0; i < factors.size(); ++i) {
    double expected =
        llama3_factor(scaling, rotations(i, factors.size(), theta));
    if (!(std::fabs(factors[i] - expected) <= kTolerance * expected)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<RopeScaling> fit_llama3_scaling(
    const std::vector<float>& factors, double rope_theta
) {
  // Published models have low_freq_factor 1; a common multiple of it, the
  // high factor and the context can't be told from the factors anyway.
  RopeScaling scaling{
      .type = "llama3",
      .factor = *std::max_element(factors.begin(), factors.end()),
      .original_context = 8192,
      .low_freq_factor = 1,
      .high_freq_factor = 4,
      .beta_fast = {},
      .beta_slow = {},
  };
  if (!(scaling.factor > 1) || !std::isfinite(scaling.factor)) {
    return std::nullopt;
  }
  if (fits(scaling, factors, rope_theta)) {
    return scaling;
  }
  // In the smooth part c w - s h = 1 - s, with w the rotations, s the
  // smoothing, c the context and h the high factor: two points give both.
  std::vector<std::pair<double, double>> points;
  for (size_t i = 0; i < factors.size(); ++i) {
    double smooth =
        (1 / factors[i] - 1 / scaling.factor) / (1 - 1 / scaling.factor);
    if (smooth > kTolerance && smooth < 1 - kTolerance) {
      points.emplace_back(rotations(i, factors.size(), rope_theta), smooth);
    }
  }
  if (points.size() < 2) {
    return std::nullopt;
  }
  auto [w1, s1] = points.front();
  auto [w2, s2] = points.back();
  double determinant = s1 * w2 - w1 * s2;
  double high = (w1 * (1 - s2) - w2 * (1 - s1)) / determinant;
  double context = (s1 * (1 - s2) - s2 * (1 - s1)) / determinant;
  if (!(context >= 1 && context < 1e9) || !std::isfinite(high)) {
    return std::nullopt;
  }
  scaling.original_context = std::llround(context);
  scaling.high_freq_factor = std::round(high * 1000) / 1000;
  return fits(scaling, factors, rope_theta) ? std::optional(scaling)
                                            : std::nullopt;
}

}  // namespace mlxcel::convert
