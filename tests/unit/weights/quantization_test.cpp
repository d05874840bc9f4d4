#include "mlxcel/weights/quantization.h"

#include <fmt/format.h>

#include <cmath>

#include "mlxcel/core/json.h"
#include "mlxcel/core/numbers.h"
#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

QuantConfig config_of(const std::string& text) {
  return QuantConfig::from_config(Json::parse(text, "DIR/config.json"));
}

TEST(QuantConfig, DefaultsDependOnTheMode) {
  EXPECT_FALSE(config_of("{}").declared);
  EXPECT_FALSE(config_of(R"({"quantization":null})").declared);
  struct Row {
    const char* mode;
    QuantMode value;
    int bits;
    int group;
  };
  for (auto [mode, value, bits, group] :
       {Row{"affine", QuantMode::affine, 4, 64},
        Row{"mxfp4", QuantMode::mxfp4, 4, 32},
        Row{"mxfp8", QuantMode::mxfp8, 8, 32},
        Row{"nvfp4", QuantMode::nvfp4, 4, 16}}) {
    auto read =
        config_of(fmt::format(R"({{"quantization":{{"mode":"{}"}}}})", mode));
    EXPECT_TRUE(read.declared);
    EXPECT_EQ(read.mode, value);
    EXPECT_EQ(read.bits, bits);
    EXPECT_EQ(read.group, group);
    EXPECT_EQ(quant_mode_name(value), mode);
  }
}

TEST(QuantConfig, IsFoundInFourPlaces) {
  const std::string eight = R"({"bits":8,"group_size":32})";
  for (const char* place :
       {R"({{"quantization":{}}})",
        R"({{"quantization_config":{}}})",
        R"({{"text_config":{{"quantization":{}}}}})",
        R"({{"text_config":{{"quantization_config":{}}}}})"}) {
    auto read = config_of(fmt::format(fmt::runtime(place), eight));
    EXPECT_TRUE(read.declared) << place;
    EXPECT_EQ(read.bits, 8);
    EXPECT_EQ(read.group, 32);
  }
  // A converted model keeps the original's method beside MLX's own object.
  auto both = config_of(R"({"quantization_config":{"quant_method":"mxfp4"},)"
                        R"("quantization":{"mode":"mxfp4"}})");
  EXPECT_EQ(both.mode, QuantMode::mxfp4);
}

struct BadField {
  const char* fields;
  std::vector<std::string> message;
};

// lablup/mlxcel #929 and weights-and-quantization.md 12.1.
TEST(QuantConfig, WrongFieldsAreNamedWithTheirValues) {
  for (const BadField& bad : std::vector<BadField>{
           {R"("bits":0)", {"quantization.bits", "0"}},
           {R"("bits":33)", {"quantization.bits", "33"}},
           {R"("bits":64)", {"quantization.bits", "64"}},
           {R"("bits":-4)", {"quantization.bits", "-4"}},
           {R"("bits":4.5)", {"quantization.bits", "4.5"}},
           {R"("bits":[4])", {"quantization.bits"}},
           {R"("group_size":0)", {"quantization.group_size", "0"}},
           {R"("group_size":1048577)", {"group_size", "1048577"}},
           {R"("mode":"")", {"quantization.mode", "\"\""}},
           {R"("mode":"MXFP4")", {"quantization.mode", "MXFP4"}},
           {R"("mode":" affine")", {"quantization.mode", " affine"}},
           {R"("mode":"gptq")", {"quantization.mode", "gptq"}},
           {R"("mode":"dense")", {"quantization.mode", "dense"}},
           {R"("mode":4)", {"quantization.mode", "4"}},
           {R"("model.a":{"bits":0})", {"quantization.model.a.bits", "0"}},
       }) {
    std::vector<std::string> parts = bad.message;
    parts.push_back("DIR/config.json");
    expect_error(
        [&] {
          config_of(fmt::format(R"({{"quantization":{{{}}}}})", bad.fields));
        },
        ErrorCode::invalid_input,
        parts
    );
  }
  expect_error(
      [] { config_of(R"({"quantization":4})"); },
      ErrorCode::invalid_input,
      {"quantization", "an object", "4"}
  );
}

TEST(QuantConfig, ForeignMethodsAreRefusedByName) {
  for (const char* method :
       {"gptq", "awq", "bitsandbytes", "hqq", "mxfp4", "quark", ""}) {
    expect_error(
        [&] {
          config_of(fmt::format(
              R"({{"quantization_config":{{"quant_method":"{}","bits":4}}}})",
              method
          ));
        },
        ErrorCode::unsupported,
        {"quantization_config.quant_method",
         fmt::format("\"{}\"", method),
         "mlx_lm.convert",
         "DIR/config.json"}
    );
  }
  expect_error(
      [] {
        config_of(
            R"({"text_config":{"quantization_config":{)"
            R"("quant_method":"compressed-tensors","format":"pack-quantized"}}})"
        );
      },
      ErrorCode::unsupported,
      {"compressed-tensors", "pack-quantized"}
  );
}

// Blaizzy/mlx-vlm #1791: keys with or without the wrapper's prefix.
TEST(QuantConfig, OverridesMatchWithAndWithoutAWrapper) {
  auto read =
      config_of(R"({"quantization":{"bits":4,"group_size":64,)"
                R"("model.layers.3.mlp.gate":{"bits":8,"group_size":64},)"
                R"("language_model.model.layers.4.mlp.gate":{"bits":6},)"
                R"("lm_head":false,"model.embed_tokens":true,)"
                R"("model.layers.30.mlp.gate":{"bits":2},)"
                R"("quant_note":"text","list":[1]}})");
  EXPECT_EQ(read.overrides.size(), 5u);
  for (const char* prefix :
       {"", "model.", "language_model.model.", "model.language_model."}) {
    auto path = [&](const char* rest) { return std::string(prefix) + rest; };
    EXPECT_EQ(read.for_module(path("layers.3.mlp.gate")).bits, 8);
    EXPECT_EQ(read.for_module(path("layers.4.mlp.gate")).bits, 6);
    EXPECT_EQ(read.for_module(path("layers.30.mlp.gate")).bits, 2);
    EXPECT_EQ(read.for_module(path("layers.5.mlp.gate")).bits, 4);
    EXPECT_EQ(read.for_module(path("layers.3.mlp")).bits, 4);
  }
  EXPECT_TRUE(read.for_module("lm_head").dense);
  EXPECT_TRUE(read.for_module("language_model.lm_head").dense);
  EXPECT_FALSE(read.for_module("model.embed_tokens").dense);
  EXPECT_EQ(read.for_module("model.x").path, "model.x");
}

TEST(QuantConfig, ExactOverrideComesFirst) {
  auto read =
      config_of(R"({"quantization":{"model.a":{"bits":2},"a":{"bits":3},)"
                R"("language_model.model.a":{"bits":5}}})");
  EXPECT_EQ(read.for_module("a").bits, 3);
  EXPECT_EQ(read.for_module("model.a").bits, 2);
  EXPECT_EQ(read.for_module("language_model.model.a").bits, 5);
}

// 12.6: what an override leaves out is the default, not the top level's.
TEST(QuantConfig, OverridesInheritNothing) {
  auto read =
      config_of(R"({"quantization":{"mode":"mxfp4","group_size":32,"bits":4,)"
                R"("a":{"bits":8},"b":{"mode":"mxfp8"}}})");
  EXPECT_EQ(read.for_module("a").mode, QuantMode::affine);
  EXPECT_EQ(read.for_module("a").group, 64);
  EXPECT_EQ(read.for_module("b").bits, 8);
  EXPECT_EQ(read.for_module("c").mode, QuantMode::mxfp4);
}

TEST(WeightFormat, DescribesAndCountsBytes) {
  WeightFormat dense{QuantMode::dense, DType::bf16, 0, 0};
  EXPECT_EQ(dense.describe(), "bf16");
  EXPECT_EQ(dense.row_bytes(10), 20);
  WeightFormat affine{QuantMode::affine, DType::f32, 3, 64};
  EXPECT_EQ(affine.describe(), "affine 3-bit group 64");
  EXPECT_EQ(affine.row_bytes(128), 48 + 2 * 2 * 4);
  WeightFormat nvfp4{QuantMode::nvfp4, DType::u8, 4, 16};
  EXPECT_EQ(nvfp4.describe(), "nvfp4 4-bit group 16");
  EXPECT_EQ(nvfp4.row_bytes(64), 32 + 4);
}

// Codes with scale 1 and bias 0 come back as they were packed.
LinearWeight affine_codes(
    int bits, std::vector<uint32_t> words, size_t offset = 0
) {
  LinearWeight weight;
  weight.path = "w";
  weight.rows = 1;
  weight.cols = static_cast<int64_t>(words.size()) * 32 / bits;
  weight.format = {QuantMode::affine, DType::f32, bits, 32};
  auto count = static_cast<int64_t>(words.size());
  weight.codes =
      weight_at_offset(DType::u32, {1, count}, bytes_of(words), offset);
  std::vector<float> ones(static_cast<size_t>(weight.cols / 32), 1.0f);
  std::vector<float> zeros(ones.size(), 0.0f);
  std::vector<int64_t> shape{1, weight.cols / 32};
  weight.scales = weight_at_offset(DType::f32, shape, bytes_of(ones), offset);
  weight.biases = weight_at_offset(DType::f32, shape, bytes_of(zeros), offset);
  return weight;
}

std::vector<float> repeated(const std::vector<float>& values, size_t count) {
  std::vector<float> out;
  while (out.size() < count) {
    out.insert(out.end(), values.begin(), values.end());
  }
  out.resize(count);
  return out;
}

// weights-and-quantization.md 11.1.
TEST(Dequantize, AffinePackingVectors) {
  auto codes = [](int bits, std::vector<uint32_t> words) {
    return dequantize(affine_codes(bits, std::move(words)));
  };
  EXPECT_EQ(
      codes(4, std::vector<uint32_t>(4, 0x76543210)),
      repeated({0, 1, 2, 3, 4, 5, 6, 7}, 32)
  );
  EXPECT_EQ(
      codes(8, std::vector<uint32_t>(8, 0xff030201)),
      repeated({1, 2, 3, 255}, 32)
  );
  EXPECT_EQ(codes(2, {0x39393939, 0x39393939}), repeated({1, 2, 3, 0}, 32));
  EXPECT_EQ(codes(1, {0x00000005}), [] {
    std::vector<float> wanted(32, 0.0f);
    wanted[0] = wanted[2] = 1.0f;
    return wanted;
  }());
  EXPECT_EQ(
      codes(3, {0x88fac688, 0xc688fac6, 0xfac688fa}),
      repeated({0, 1, 2, 3, 4, 5, 6, 7}, 32)
  );
  std::vector<float> up(32);
  std::vector<float> by_three(32);
  for (int i = 0; i < 32; ++i) {
    up[static_cast<size_t>(i)] = static_cast<float>(i);
    by_three[static_cast<size_t>(i)] = static_cast<float>(3 * i % 64);
  }
  EXPECT_EQ(
      codes(5, {0x8a418820, 0xc5a92839, 0xca307b9a, 0x38bdab49, 0xffbbcdeb}), up
  );
  EXPECT_EQ(
      codes(
          6,
          {0xcc2460c0,
           0xe6d85523,
           0xb6a9e485,
           0xfce76cf0,
           0xe2c8142f,
           0x75a5d444}
      ),
      by_three
  );
}

TEST(Dequantize, OneBitOffIsTheBias) {
  LinearWeight weight = affine_codes(1, {0x00000005});
  weight.scales = make_weight<float>(DType::f32, {1, 1}, {2.0f});
  weight.biases = make_weight<float>(DType::f32, {1, 1}, {-1.0f});
  std::vector<float> wanted(32, -1.0f);
  wanted[0] = wanted[2] = 1.0f;
  EXPECT_EQ(dequantize(weight), wanted);
}

TEST(Dequantize, AnyAlignment) {
  std::vector<uint32_t> words = {
      0x8a418820, 0xc5a92839, 0xca307b9a, 0x38bdab49, 0xffbbcdeb};
  auto aligned = dequantize(affine_codes(5, words));
  for (size_t offset : {1, 2, 3, 5}) {
    EXPECT_EQ(dequantize(affine_codes(5, words, offset)), aligned) << offset;
  }
}

LinearWeight block_float(
    QuantMode mode,
    int bits,
    int group,
    std::vector<uint32_t> words,
    std::vector<uint8_t> scales,
    size_t offset = 0
) {
  LinearWeight weight;
  weight.path = "w";
  weight.rows = 1;
  weight.cols = static_cast<int64_t>(words.size()) * 32 / bits;
  weight.format = {mode, DType::u8, bits, group};
  weight.codes = weight_at_offset(
      DType::u32,
      {1, static_cast<int64_t>(words.size())},
      bytes_of(words),
      offset
  );
  weight.scales = weight_at_offset(
      DType::u8,
      {1, static_cast<int64_t>(scales.size())},
      bytes_of(scales),
      offset
  );
  return weight;
}

// weights-and-quantization.md 11.2.
TEST(Dequantize, BlockFloatVectors) {
  for (size_t offset : {0, 1, 2, 3, 5}) {
    auto mxfp4 = [&](uint32_t word) {
      return dequantize(block_float(
          QuantMode::mxfp4,
          4,
          32,
          std::vector<uint32_t>(4, word),
          {0x80},
          offset
      ));
    };
    EXPECT_EQ(mxfp4(0x76543210), repeated({0, 1, 2, 3, 4, 6, 8, 12}, 32));
    auto negative = mxfp4(0xfedcba98);
    EXPECT_EQ(negative, repeated({-0.f, -1, -2, -3, -4, -6, -8, -12}, 32));
    EXPECT_TRUE(std::signbit(negative[0]));
    EXPECT_EQ(
        dequantize(block_float(
            QuantMode::mxfp8,
            8,
            32,
            std::vector<uint32_t>(8, 0x3838b8b8),
            {0x7e},
            offset
        )),
        repeated({-0.5f, -0.5f, 0.5f, 0.5f}, 32)
    );
    EXPECT_EQ(
        dequantize(block_float(
            QuantMode::nvfp4, 4, 16, {0x00000072, 0}, {0x44}, offset
        )),
        (std::vector<float>{3, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
    );
  }
}

TEST(Dequantize, SpecialBytesOfE4M3AndE8M0) {
  std::vector<uint8_t> bytes = {
      0x38, 0xb8, 0x30, 0x40, 0x01, 0x08, 0x7e, 0xfe, 0x7f, 0xff, 0x00, 0x80};
  bytes.resize(32);
  std::vector<uint32_t> words(8);
  std::memcpy(words.data(), bytes.data(), 32);
  auto values = dequantize(block_float(QuantMode::mxfp8, 8, 32, words, {0x7f}));
  std::vector<float> wanted = {1, -1, 0.5f, 2, 0x1p-9f, 0x1p-6f, 448, -448};
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(values[i], wanted[i]) << i;
  }
  EXPECT_TRUE(std::isnan(values[8]));
  EXPECT_TRUE(std::isnan(values[9]));
  auto scaled = [&](uint8_t scale) {
    return dequantize(block_float(QuantMode::mxfp8, 8, 32, words, {scale}))[0];
  };
  EXPECT_EQ(scaled(0x00), 0x1p-127f);
  EXPECT_EQ(scaled(0xfe), 0x1p127f);
  EXPECT_TRUE(std::isnan(scaled(0xff)));
}

TEST(Dequantize, PlanesOfTheWrongSizeAreAnError) {
  LinearWeight weight = affine_codes(4, {1, 2, 3, 4});
  weight.codes = make_weight<uint32_t>(DType::u32, {1, 4}, {1, 2, 3});
  expect_error(
      [&] { dequantize(weight); }, ErrorCode::internal, {"w.weight", "12"}
  );
}

TEST(QuantizeAffine, PacksTheSpecVectors) {
  // Integers from 0 to the largest code quantise to themselves: the edge is
  // the maximum, the scale -1 and the bias that maximum.
  for (int bits : {2, 3, 4, 5, 6, 8}) {
    int levels = (1 << bits) - 1;
    std::vector<float> values(64);
    for (int i = 0; i < 64; ++i) {
      values[static_cast<size_t>(i)] =
          static_cast<float>(i == 63 ? 0 : (i * 7) % (levels + 1));
    }
    values[1] = static_cast<float>(levels);
    AffinePlanes planes = quantize_affine(values, 1, 64, bits, 64);
    EXPECT_EQ(planes.scales, std::vector<float>{-1.0f}) << bits;
    EXPECT_EQ(planes.biases, std::vector<float>{static_cast<float>(levels)});
    ASSERT_EQ(planes.codes.size(), static_cast<size_t>(2 * bits));
    LinearWeight weight = affine_codes(bits, planes.codes);
    auto codes = dequantize(weight);
    for (size_t i = 0; i < 64; ++i) {
      EXPECT_EQ(codes[i], static_cast<float>(levels) - values[i]);
    }
  }
}

TEST(QuantizeAffine, ConstantZeroAndNaNGroups) {
  std::vector<float> values(96, 0.0f);
  for (size_t i = 32; i < 64; ++i) {
    values[i] = 2.5f;
  }
  values[64] = std::nanf("");
  values[65] = 3.0f;
  AffinePlanes planes = quantize_affine(values, 1, 96, 4, 32);
  EXPECT_EQ(planes.biases[0], 0.0f);
  EXPECT_EQ(planes.codes[0], 0u);
  EXPECT_EQ(planes.biases[1], 2.5f);
  EXPECT_EQ(planes.codes[4], 0u);
  EXPECT_EQ(planes.codes[8] & 15, 0u);  // the NaN
}

// Of two edges of the same magnitude MLX takes the upper one.
TEST(QuantizeAffine, SymmetricGroup) {
  std::vector<float> values(32, 0.0f);
  values[3] = -7.5f;
  values[4] = 7.5f;
  AffinePlanes planes = quantize_affine(values, 1, 32, 4, 32);
  EXPECT_EQ(planes.biases[0], 7.5f);
  EXPECT_LT(planes.scales[0], 0.0f);
}

TEST(QuantizeAffine, WrongSizesAreRefused) {
  std::vector<float> values(64);
  for (auto [rows, cols, bits, group] :
       {std::tuple{1, 64, 7, 64},
        std::tuple{1, 64, 1, 64},
        std::tuple{1, 64, 4, 48},
        std::tuple{1, 64, 4, 128},
        std::tuple{2, 64, 4, 64},
        std::tuple{1, 64, 4, 0}}) {
    EXPECT_THROW(quantize_affine(values, rows, cols, bits, group), Error);
  }
}

}  // namespace
}  // namespace mlxcel::test
