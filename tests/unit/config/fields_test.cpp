#include "mlxcel/config/fields.h"

#include <gtest/gtest.h>

#include <cmath>

#include "mlxcel/config/config.h"
#include "tests/unit/support/expect_error.h"

namespace mlxcel {
namespace {

Json config(const std::string& text) {
  return parse_config(text, "f");
}

TEST(ConfigFields, RanksThatSayAuto) {
  auto rank = [](const char* text) {
    return rank_or_auto(config(text), "time_step_rank");
  };
  EXPECT_EQ(rank(R"({"time_step_rank": "auto"})"), 0);
  EXPECT_EQ(rank("{}"), 0);
  EXPECT_EQ(rank(R"({"time_step_rank": null})"), 0);
  EXPECT_EQ(rank(R"({"time_step_rank": 48})"), 48);
  EXPECT_EQ(rank(R"({"time_step_rank": "48"})"), 48);
  EXPECT_EQ(rank(R"({"time_step_rank": 48.0})"), 48);
  EXPECT_ERROR(rank(R"({"time_step_rank": -1})"), "time_step_rank");
}

TEST(ConfigFields, TimeStepLimits) {
  auto limit = [](const std::string& list) {
    return time_step_limit(config("{\"time_step_limit\": " + list + "}"));
  };
  constexpr double kInfinity = INFINITY;
  EXPECT_EQ(limit("[0.5, 2]"), std::pair(0.5, 2.0));
  EXPECT_EQ(limit("[0.0, Infinity]"), std::pair(0.0, kInfinity));
  EXPECT_EQ(limit("[0.0, \"inf\"]"), std::pair(0.0, kInfinity));
  EXPECT_EQ(limit("[0.001, 0.1, 3]"), std::pair(0.001, 0.1));
  EXPECT_EQ(limit("[0.5]"), std::pair(0.0, kInfinity));
  EXPECT_EQ(limit("null"), std::pair(0.0, kInfinity));
  EXPECT_EQ(
      time_step_limit(config(R"({"time_step_min": 0.001, "time_step_max": 0.1})"
      )),
      std::pair(0.0, kInfinity)
  );
  EXPECT_ERROR(limit("3"), "time_step_limit: expected a list");
}

TEST(ConfigFields, LayerPatterns) {
  auto pattern = [](const char* text) {
    std::vector<char> codes = layer_pattern(config(text));
    return std::string(codes.begin(), codes.end());
  };
  EXPECT_EQ(pattern(R"({"hybrid_override_pattern": "M-M*E"})"), "M-M*E");
  EXPECT_EQ(pattern(R"({"hybrid_override_pattern": "M, -,*"})"), "M-*");
  EXPECT_EQ(pattern(R"({"hybrid_override_pattern": ["M", "*"]})"), "M*");
  EXPECT_EQ(
      pattern(R"({"num_hidden_layers": 9, "hybrid_override_pattern": null,
                  "layers_block_type": ["mamba", "attention", "moe", "mlp"]})"),
      "M*E-"
  );
  EXPECT_EQ(pattern("{}"), "");
  EXPECT_ERROR(
      pattern(R"({"layers_block_type": ["mamba", "conv"]})"),
      "layers_block_type[1]: \"conv\" is no kind of layer"
  );
  EXPECT_ERROR(
      pattern(R"({"hybrid_override_pattern": "MX"})"),
      "hybrid_override_pattern: \"X\" is no kind of layer"
  );
}

TEST(ConfigFields, QuantizationAnywhere) {
  EXPECT_FALSE(declares_quantization(config("{}")));
  EXPECT_FALSE(declares_quantization(config(R"({"quantization": null})")));
  EXPECT_TRUE(declares_quantization(config(R"({"quantization": {}})")));
  EXPECT_TRUE(declares_quantization(
      config(R"({"text_config": {"quantization_config": {"bits": 4}}})")
  ));
}

TEST(ConfigFields, DetectorSizesAndLabels) {
  auto size = [](const char* text) {
    return detector_image_size(config(text));
  };
  EXPECT_EQ(size(R"({"image_size": 640})"), 640);
  EXPECT_EQ(size(R"({"image_size": 640, "size": {"height": 800}})"), 800);
  EXPECT_EQ(size(R"({"size": {"width": 7, "shortest_edge": 9}})"), 9);
  EXPECT_EQ(size("{}"), 0);
  EXPECT_ERROR(size(R"({"size": {"height": 0}})"), "size.height");
  auto ids = labels(config(R"({"id2label": {"10": "c", "9": "b", "0": "a"}})"));
  ASSERT_EQ(ids.size(), 3u);
  EXPECT_EQ(ids[1], std::pair(int64_t{9}, std::string("b")));
  EXPECT_EQ(ids[2].first, 10);
  EXPECT_ERROR(labels(config(R"({"id2label": {"x": "a"}})")), "id2label.x");
}

TEST(ConfigFields, DraftersLiftTheirBlock) {
  Json lifted = lift_drafter_fields(
      config(R"({"mask_token_id": 1, "dflash_config": {"mask_token_id": 5}})")
  );
  EXPECT_EQ(lifted.at("mask_token_id").as_int(), 5);
  Json plain = lift_drafter_fields(
      config(R"({"mask_token_id": 1, "dflash_config": true})")
  );
  EXPECT_EQ(plain.at("mask_token_id").as_int(), 1);
}

}  // namespace
}  // namespace mlxcel
