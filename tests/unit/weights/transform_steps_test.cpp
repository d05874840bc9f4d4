#include <array>

#include "mlxcel/config/config.h"
#include "mlxcel/weights/mla_projection.h"
#include "mlxcel/weights/transform/conv_layout.h"
#include "mlxcel/weights/transform/shared_kv.h"
#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

Weight numbers(std::vector<int64_t> shape) {
  int64_t count = 1;
  for (int64_t n : shape) {
    count *= n;
  }
  std::vector<float> all;
  for (int64_t i = 0; i < count; ++i) {
    all.push_back(static_cast<float>(i % 251));
  }
  return make_weight<float>(DType::f32, std::move(shape), all);
}

WeightMap layers_of(const std::string& prefix, int count) {
  WeightMap weights;
  for (int i = 0; i < count; ++i) {
    std::string layer = prefix + std::to_string(i) + ".self_attn.";
    for (const char* module :
         {"q_proj.weight",
          "k_proj.weight",
          "k_proj.scales",
          "v_proj.weight",
          "k_norm.weight",
          "o_proj.weight"}) {
      weights.insert(layer + module, numbers({1}));
    }
  }
  return weights;
}

int64_t drop(WeightMap& weights, const std::string& config) {
  return drop_shared_kv(parse_config(config, "config.json"), weights);
}

TEST(SharedKv, TheLastLayersLoseKeysAndValues) {
  for (const char* prefix : {"model.layers.", "language_model.model.layers."}) {
    WeightMap weights = layers_of(prefix, 12);
    const char* config =
        R"({"num_hidden_layers": 12, "num_kv_shared_layers": 2})";
    EXPECT_EQ(drop(weights, config), 8);
    EXPECT_TRUE(
        weights.contains(prefix + std::string("9.self_attn.k_proj.weight"))
    );
    EXPECT_FALSE(
        weights.contains(prefix + std::string("10.self_attn.k_proj.scales"))
    );
    EXPECT_FALSE(
        weights.contains(prefix + std::string("11.self_attn.k_norm.weight"))
    );
    EXPECT_TRUE(
        weights.contains(prefix + std::string("11.self_attn.q_proj.weight"))
    );
    EXPECT_EQ(drop(weights, config), 0);
  }
  WeightMap nested = layers_of("model.layers.", 3);
  EXPECT_EQ(
      drop(nested, R"({"num_hidden_layers": 9, "text_config": {
                       "num_hidden_layers": 3, "num_kv_shared_layers": 3}})"),
      12
  );
}

TEST(SharedKv, TowersAndOtherFamiliesKeepTheirs) {
  for (const char* prefix :
       {"vision_tower.layers.",
        "model.vision_tower.encoder.layers.",
        "audio.model.layers.",
        "model.layers.x"}) {
    WeightMap weights = layers_of(prefix, 4);
    EXPECT_EQ(
        drop(weights, R"({"num_hidden_layers": 4, "num_kv_shared_layers": 4})"),
        0
    ) << prefix;
  }
  WeightMap weights = layers_of("model.layers.", 2);
  EXPECT_EQ(drop(weights, R"({"num_hidden_layers": 2})"), 0);
  EXPECT_EQ(
      drop(weights, R"({"num_hidden_layers": 2, "num_kv_shared_layers": 0})"), 0
  );
}

TEST(SharedKv, ImpossibleNumbersNameTheField) {
  for (const char* config :
       {R"({"num_hidden_layers": 2, "num_kv_shared_layers": 3})",
        R"({"num_hidden_layers": 2, "num_kv_shared_layers": -1})"}) {
    WeightMap weights;
    expect_error(
        [&] { drop(weights, config); },
        ErrorCode::invalid_input,
        {"num_kv_shared_layers"}
    );
  }
  WeightMap weights;
  expect_error(
      [&] { drop(weights, R"({"num_kv_shared_layers": 3})"); },
      ErrorCode::invalid_input,
      {"num_hidden_layers"}
  );
}

using Shape = std::vector<int64_t>;

TEST(ConvLayout, TheShapeDecides) {
  EXPECT_TRUE(is_channel_last_conv2d(Shape{64, 3, 3, 3}));
  EXPECT_TRUE(is_channel_last_conv2d(Shape{768, 16, 16, 3}));
  EXPECT_FALSE(is_channel_last_conv2d(Shape{768, 3, 16, 16}));
  EXPECT_FALSE(is_channel_last_conv2d(Shape{8, 16, 16, 3}));
  EXPECT_FALSE(is_channel_last_conv2d(Shape{64, 3, 3}));
  EXPECT_TRUE(is_channel_last_depthwise_conv1d(Shape{128, 4, 1}));
  EXPECT_FALSE(is_channel_last_depthwise_conv1d(Shape{128, 1, 4}));
  EXPECT_FALSE(is_channel_last_depthwise_conv1d(Shape{128, 1, 1}));
}

TEST(ConvLayout, Conv2dIsPermutedOnce) {
  const Shape from = {5, 3, 2, 4};  // [O, I, H, W]
  Weight stored = numbers(from);
  Weight last = channel_last_conv2d("c", stored);
  EXPECT_EQ(last.shape, (Shape{5, 2, 4, 3}));
  std::vector<float> in = to_float(stored);
  std::vector<float> out = to_float(last);
  for (int64_t o = 0; o < 5; ++o) {
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t h = 0; h < 2; ++h) {
        for (int64_t w = 0; w < 4; ++w) {
          auto a = static_cast<size_t>(((o * 3 + i) * 2 + h) * 4 + w);
          auto b = static_cast<size_t>(((o * 2 + h) * 4 + w) * 3 + i);
          ASSERT_EQ(out[b], in[a]);
        }
      }
    }
  }
  Weight square = channel_last_conv2d("c", numbers({16, 3, 8, 8}));
  EXPECT_EQ(square.shape, (Shape{16, 8, 8, 3}));
  EXPECT_EQ(channel_last_conv2d("c", square).source, square.source);
  expect_error(
      [] {
        channel_last_conv2d("c.weight", numbers({4, 4}));
      },
      ErrorCode::invalid_input,
      {"c.weight", "4 dimensions", "[4, 4] F32"}
  );
}

// mlx-lm #1623: what is converted already must not be converted again because
// other tensors of the original are still there; (4, 1, 3) -> (4, 3, 1).
TEST(ConvLayout, DepthwiseConv1dIsDecidedByItsOwnShape) {
  Weight last = channel_last_depthwise_conv1d("c", numbers({4, 1, 3}));
  EXPECT_EQ(last.shape, (Shape{4, 3, 1}));
  EXPECT_EQ(to_float(last), to_float(numbers({4, 1, 3})));
  EXPECT_EQ(channel_last_depthwise_conv1d("c", last).source, last.source);
  Weight halves = make_weight<uint16_t>(DType::bf16, {2, 1, 2}, {1, 2, 3, 4});
  EXPECT_EQ(channel_last_depthwise_conv1d("c", halves).shape, (Shape{2, 2, 1}));
}

// Planes of `heads` heads with 3 key and 2 value rows of 64.
WeightMap projection(int64_t heads, int bits, QuantMode mode) {
  int64_t rows = heads * 5;
  constexpr int64_t kRank = 64;
  WeightMap weights;
  weights.origin = "DIR";
  if (mode == QuantMode::dense) {
    weights.insert("kv_b_proj.weight", numbers({rows, kRank}));
    return weights;
  }
  auto words = static_cast<size_t>(rows * kRank * bits / 32);
  std::vector<uint32_t> codes(words);
  for (size_t i = 0; i < words; ++i) {
    codes[i] = static_cast<uint32_t>(i) * 2654435761U;
  }
  weights.insert(
      "kv_b_proj.weight",
      make_weight<uint32_t>(DType::u32, {rows, kRank * bits / 32}, codes)
  );
  if (mode == QuantMode::affine) {
    weights.insert("kv_b_proj.scales", numbers({rows, 2}));
    weights.insert("kv_b_proj.biases", numbers({rows, 2}));
    return weights;
  }
  int64_t groups = kRank / (mode == QuantMode::nvfp4 ? 16 : 32);
  std::vector<uint8_t> scales(static_cast<size_t>(rows * groups));
  for (size_t i = 0; i < scales.size(); ++i) {
    scales[i] = static_cast<uint8_t>(120 - i % 7);
  }
  weights.insert(
      "kv_b_proj.scales",
      make_weight<uint8_t>(DType::u8, {rows, groups}, scales)
  );
  return weights;
}

std::vector<MlaHead> split(const WeightMap& weights, int64_t heads) {
  return split_mla_projection(weights, "kv_b_proj", heads, 3, 2, 64, {});
}

TEST(MlaProjection, HeadsAreTheRowsOfTheWhole) {
  struct Format {
    QuantMode mode;
    int bits;
  };
  for (int64_t heads : {1, 3, 16}) {
    for (Format format :
         {Format{QuantMode::dense, 32},
          Format{QuantMode::affine, 2},
          Format{QuantMode::affine, 3},
          Format{QuantMode::affine, 4},
          Format{QuantMode::affine, 5},
          Format{QuantMode::affine, 6},
          Format{QuantMode::affine, 8},
          Format{QuantMode::mxfp4, 4},
          Format{QuantMode::mxfp8, 8},
          Format{QuantMode::nvfp4, 4}}) {
      WeightMap weights = projection(heads, format.bits, format.mode);
      std::vector<float> whole =
          dequantize(bind_linear(weights, "kv_b_proj", heads * 5, 64, {}));
      std::vector<float> joined;
      for (const MlaHead& head : split(weights, heads)) {
        EXPECT_EQ(head.keys.rows, 3);
        EXPECT_EQ(head.values.rows, 2);
        for (const LinearWeight* part : {&head.keys, &head.values}) {
          std::vector<float> values = dequantize(*part);
          joined.insert(joined.end(), values.begin(), values.end());
        }
      }
      // Bytes: NaN is a value of mxfp8.
      ASSERT_EQ(joined.size(), whole.size());
      EXPECT_EQ(std::memcmp(joined.data(), whole.data(), 4 * whole.size()), 0)
          << heads << " heads, " << format.bits << " bits";
    }
  }
}

TEST(MlaProjection, ImpossibleSizesAreNamed) {
  WeightMap weights = projection(3, 4, QuantMode::affine);
  for (auto [heads, nope, value] :
       {std::array<int64_t, 3>{-3, -5, -3},
        std::array<int64_t, 3>{3, 5, 0},
        std::array<int64_t, 3>{3, 7, -2},
        std::array<int64_t, 3>{int64_t{1} << 62, 3, 2}}) {
    int64_t h = heads;
    int64_t n = nope;
    int64_t v = value;
    expect_error(
        [&] { split_mla_projection(weights, "kv_b_proj", h, n, v, 64, {}); },
        ErrorCode::invalid_input,
        {"kv_b_proj", "kv_lora_rank 64", "from 1 to"}
    );
  }
}

TEST(MlaProjection, WhatIsWrongIsNamed) {
  expect_error(
      [] { split(projection(3, 4, QuantMode::affine), 4); },
      ErrorCode::invalid_input,
      {"kv_b_proj", "kv_lora_rank 64", "15"}
  );
  expect_error(
      [] { split(projection(3, 1, QuantMode::affine), 3); },
      ErrorCode::unsupported,
      {"kv_b_proj", "1-bit"}
  );
  WeightMap odd = projection(3, 4, QuantMode::affine);
  odd.insert("kv_b_proj.scales", numbers({15, 3}));
  odd.insert("kv_b_proj.biases", numbers({15, 3}));
  expect_error(
      [&] { split(odd, 3); },
      ErrorCode::invalid_input,
      {"kv_b_proj", "kv_lora_rank 64"}
  );
}

}  // namespace
}  // namespace mlxcel::test
