#include "mlxcel/weights/convert/checkpoint/recipe.h"

#include <gtest/gtest.h>

#include "mlxcel/core/error.h"

namespace mlxcel::convert {
namespace {

TEST(Recipe, PatternsMatchWholePaths) {
  EXPECT_TRUE(matches("lm_head", "lm_head"));
  EXPECT_FALSE(matches("lm_head", "model.lm_head"));
  EXPECT_TRUE(matches("*v_proj", "model.layers.3.self_attn.v_proj"));
  EXPECT_FALSE(matches("*v_proj", "model.layers.3.self_attn.v_proj.x"));
  EXPECT_TRUE(matches("*.3.*.v_proj", "model.layers.3.self_attn.v_proj"));
  EXPECT_FALSE(matches("*.3.*.v_proj", "model.layers.13.self_attn.v_proj"));
  EXPECT_TRUE(matches("*.?3.*", "model.layers.13.self_attn.v_proj"));
  EXPECT_TRUE(matches("**", ""));
  EXPECT_FALSE(matches("?", ""));
  EXPECT_FALSE(matches("*ab", "aaaaaaaaac"));
}

TEST(Recipe, RulesAreFormats) {
  EXPECT_EQ(
      parse_rule("a=dense").format, (LayerFormat{QuantMode::dense, 0, 0})
  );
  EXPECT_EQ(parse_rule("a=6").format, (LayerFormat{QuantMode::affine, 6, 64}));
  EXPECT_EQ(
      parse_rule("a=3/32").format, (LayerFormat{QuantMode::affine, 3, 32})
  );
  EXPECT_EQ(
      parse_rule("a=mxfp8").format, (LayerFormat{QuantMode::mxfp8, 8, 32})
  );
  EXPECT_EQ(
      parse_rule("x=y=affine/5/128").format,
      (LayerFormat{QuantMode::affine, 5, 128})
  );
  EXPECT_EQ(parse_rule("x=y=8").pattern, "x=y");
  for (const char* wrong :
       {"",
        "a",
        "=4",
        "a=",
        "a=dense/4",
        "a=4/",
        "a=4/32/1",
        "a=7",
        "a=1",
        "a=4/16",
        "a=mxfp4/8",
        "a=nvfp4/4/32",
        "a=gptq",
        "a=-4"}) {
    EXPECT_THROW(parse_rule(wrong), Error) << wrong;
  }
}

TEST(Recipe, DefaultsFollowTheMode) {
  auto complete = [](QuantMode mode) {
    return complete_format(mode, std::nullopt, std::nullopt, "");
  };
  EXPECT_EQ(
      complete(QuantMode::affine), (LayerFormat{QuantMode::affine, 4, 64})
  );
  EXPECT_EQ(complete(QuantMode::mxfp4), (LayerFormat{QuantMode::mxfp4, 4, 32}));
  EXPECT_EQ(complete(QuantMode::mxfp8), (LayerFormat{QuantMode::mxfp8, 8, 32}));
  EXPECT_EQ(complete(QuantMode::nvfp4), (LayerFormat{QuantMode::nvfp4, 4, 16}));
}

}  // namespace
}  // namespace mlxcel::convert
