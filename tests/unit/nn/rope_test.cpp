#include "mlxcel/nn/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "mlxcel/config/config.h"
#include "tests/unit/support/expect_error.h"

namespace mlxcel::nn {
namespace {

backend::RopeSpec rope(const std::string& config, int64_t dims = 8) {
  return rope_from_config(parse_config(config, "config.json"), dims, 10000.0);
}

TEST(Rope, DefaultFrequencies) {
  auto spec = rope(R"({"rope_theta": 100.0})");
  ASSERT_EQ(spec.inverse_frequencies.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_FLOAT_EQ(
        spec.inverse_frequencies[i],
        static_cast<float>(std::pow(100.0, -static_cast<double>(i) / 4))
    );
  }
  EXPECT_FALSE(spec.interleaved);
}

TEST(Rope, ParametersBlockOfNewerConfigs) {
  auto spec = rope(
      R"({"rope_parameters": {"rope_theta": 100.0, "rope_type": "linear",
          "factor": 2.0}})"
  );
  EXPECT_FLOAT_EQ(spec.inverse_frequencies[0], 0.5F);
  EXPECT_FLOAT_EQ(spec.inverse_frequencies[2], 0.05F);
}

TEST(Rope, NullAndDefaultScalingAreNone) {
  auto plain = rope("{}").inverse_frequencies;
  EXPECT_EQ(rope(R"({"rope_scaling": null})").inverse_frequencies, plain);
  EXPECT_EQ(
      rope(R"({"rope_scaling": {"type": "default"}})").inverse_frequencies,
      plain
  );
}

TEST(Rope, UnknownKindIsAnErrorByName) {
  EXPECT_ERROR(
      rope(R"({"rope_scaling": {"rope_type": "zeta"}})"),
      "rope_scaling.rope_type: \"zeta\" is not implemented"
  );
  EXPECT_ERROR(
      rope(R"({"rope_scaling": {"rope_type": "linear"}})"),
      "rope_scaling.factor: required, but missing"
  );
  EXPECT_ERROR(
      rope(R"({"rope_scaling": {"type": "linear", "factor": 0}})"),
      "rope_scaling.factor: expected a positive number"
  );
  EXPECT_ERROR(rope(R"({"rope_theta": -1})"), "rope_theta");
}

// Values of transformers 5, modeling_rope_utils.py, for these settings.
TEST(Rope, Llama3) {
  auto spec = rope(
      R"({"rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3",
          "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}})"
  );
  ASSERT_EQ(spec.inverse_frequencies.size(), 4u);
  EXPECT_FLOAT_EQ(spec.inverse_frequencies[0], 1.0F);
  EXPECT_NEAR(spec.inverse_frequencies[3], 5.3182957e-05 / 8, 1e-9);
}

TEST(Rope, YarnAmplitude) {
  auto spec = rope(
      R"({"rope_scaling": {"rope_type": "yarn", "factor": 4.0,
          "original_max_position_embeddings": 32}})"
  );
  EXPECT_NEAR(spec.amplitude, 0.1 * std::log(4.0) + 1.0, 1e-6);
  EXPECT_ERROR(
      rope(R"({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}})"),
      "original_max_position_embeddings"
  );
}

}  // namespace
}  // namespace mlxcel::nn
