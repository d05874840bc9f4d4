#include "mlxcel/nn/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "mlxcel/core/error.h"
#include "mlxcel/core/json.h"

namespace mlxcel::nn {

namespace {

using std::numbers::pi;

double positive(const Json& field) {
  double value = field.as_double();
  if (!(value > 0)) {
    field.reject(fmt::format("expected a positive number, got {}", value));
  }
  return value;
}

double positive_or(const Json& config, const char* key, double fallback) {
  auto field = config.find(key);
  return field ? positive(*field) : fallback;
}

// Wavelengths above the low-frequency bound are stretched by `factor`, those
// below the high-frequency bound stay, those between are interpolated.
void scale_llama3(const Json& scaling, std::vector<double>& inverse) {
  double factor = positive(scaling.at("factor"));
  double low = positive_or(scaling, "low_freq_factor", 1.0);
  double high = positive_or(scaling, "high_freq_factor", 4.0);
  double context =
      positive_or(scaling, "original_max_position_embeddings", 8192);
  if (high == low) {
    scaling.at("high_freq_factor").reject("equals low_freq_factor");
  }
  for (double& frequency : inverse) {
    double wavelength = 2 * pi / frequency;
    if (wavelength > context / low) {
      frequency /= factor;
    } else if (wavelength >= context / high) {
      double smooth = (context / wavelength - low) / (high - low);
      frequency = (1 - smooth) * frequency / factor + smooth * frequency;
    }
  }
}

double yarn_magnitude(double scale, double mscale) {
  return scale <= 1 ? 1.0 : 0.1 * mscale * std::log(scale) + 1.0;
}

double yarn_amplitude(const Json& scaling, double factor) {
  if (auto given = scaling.find("attention_factor")) {
    return positive(*given);
  }
  double mscale = scaling.double_or("mscale", 0);
  double all_dim = scaling.double_or("mscale_all_dim", 0);
  if (mscale != 0 && all_dim != 0) {
    return yarn_magnitude(factor, mscale) / yarn_magnitude(factor, all_dim);
  }
  return yarn_magnitude(factor, 1.0);
}

void scale_yarn(
    const Json& config,
    const Json& scaling,
    double theta,
    backend::RopeSpec& rope,
    std::vector<double>& inverse
) {
  double factor = positive(scaling.at("factor"));
  double original = positive_or(
      scaling,
      "original_max_position_embeddings",
      config.double_or("max_position_embeddings", 0)
  );
  if (!(original > 0)) {
    positive(scaling.at("original_max_position_embeddings"));
  }
  rope.amplitude = static_cast<float>(yarn_amplitude(scaling, factor));
  double dims = static_cast<double>(rope.dims);
  auto correction = [&](double rotations) {
    return dims * std::log(original / (rotations * 2 * pi)) /
           (2 * std::log(theta));
  };
  double low = correction(positive_or(scaling, "beta_fast", 32));
  double high = correction(positive_or(scaling, "beta_slow", 1));
  if (scaling.bool_or("truncate", true)) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dims - 1);
  if (low == high) {
    high += 0.001;  // as the reference does, against a division by zero
  }
  for (size_t i = 0; i < inverse.size(); ++i) {
    double ramp =
        std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    inverse[i] = inverse[i] / factor * ramp + inverse[i] * (1 - ramp);
  }
}

std::string scaling_kind(const Json& scaling) {
  if (!scaling.is_object()) {
    scaling.reject("expected an object, got " + scaling.preview());
  }
  std::string kind = scaling.string_or("rope_type", "");
  return kind.empty() ? scaling.string_or("type", "default") : kind;
}

}  // namespace

backend::RopeSpec rope_from_config(
    const Json& config, int64_t dims, double default_theta
) {
  auto scaling = config.find("rope_scaling");
  auto parameters = config.find("rope_parameters");
  if (!scaling) {
    scaling = parameters;
  }
  double theta = positive_or(
      config,
      "rope_theta",
      parameters ? positive_or(*parameters, "rope_theta", default_theta)
                 : default_theta
  );
  backend::RopeSpec rope;
  rope.dims = dims;
  rope.interleaved = config.bool_or("rope_traditional", false);
  std::vector<double> inverse;
  for (int64_t i = 0; i < dims / 2; ++i) {
    double exponent = 2 * static_cast<double>(i) / static_cast<double>(dims);
    inverse.push_back(std::pow(theta, -exponent));
  }
  std::string kind = scaling ? scaling_kind(*scaling) : "default";
  if (kind == "linear") {
    double factor = positive(scaling->at("factor"));
    for (double& frequency : inverse) {
      frequency /= factor;
    }
  } else if (kind == "llama3") {
    scale_llama3(*scaling, inverse);
  } else if (kind == "yarn") {
    scale_yarn(config, *scaling, theta, rope, inverse);
  } else if (kind != "default") {
    fail(
        ErrorCode::unsupported,
        fmt::format(
            "[config] {}.rope_type: {} is not implemented (default, linear, "
            "llama3, yarn are) (in {})",
            scaling->path(),
            quote(kind),
            config.document_name()
        )
    );
  }
  rope.inverse_frequencies.assign(inverse.begin(), inverse.end());
  return rope;
}

}  // namespace mlxcel::nn
