#include "mlxcel/weights/vendor_format.h"

#include <fmt/format.h>

#include <cmath>

#include "mlxcel/core/json.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/weights/transform/bitnet.h"
#include "mlxcel/weights/transform/fp8_blocks.h"
#include "mlxcel/weights/transform/modelopt.h"
#include "mlxcel/weights/transform/packed_mxfp4.h"
#include "mlxcel/weights/transform/plain_types.h"
#include "mlxcel/weights/transform/vendor.h"
#include "mlxcel/weights/transform/wrapper_names.h"
#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

Json declared(const std::string& fields) {
  return Json::parse(
      R"({"quantization_config":{)" + fields + "}}", "DIR/config.json"
  );
}

WeightMap map_of(const std::vector<std::pair<std::string, Weight>>& tensors) {
  WeightMap weights;
  weights.origin = "DIR";
  for (const auto& [name, weight] : tensors) {
    weights.insert(name, weight);
  }
  return weights;
}

Weight bytes(
    DType dtype, std::vector<int64_t> shape, std::vector<uint8_t> values
) {
  return make_weight(dtype, std::move(shape), values);
}

Weight filled(DType dtype, std::vector<int64_t> shape, uint8_t value = 0) {
  size_t count = static_cast<size_t>(dtype_size(dtype));
  for (int64_t dim : shape) {
    count *= static_cast<size_t>(dim);
  }
  return bytes(dtype, std::move(shape), std::vector<uint8_t>(count, value));
}

TEST(VendorFormat, IsKnownByItsMethod) {
  auto of = [](const std::string& fields) {
    return vendor_format(declared(fields));
  };
  std::string block = R"("weight_block_size":[128,128])";
  EXPECT_EQ(of(R"("quant_method":"fp8",)" + block), VendorFormat::fp8_blocks);
  EXPECT_EQ(
      of(R"("quant_method":"FP8","fmt":"e4m3",)" + block),
      VendorFormat::fp8_blocks
  );
  EXPECT_EQ(
      of(R"("quant_method":"modelopt","quant_algo":"NVFP4")"),
      VendorFormat::modelopt_nvfp4
  );
  EXPECT_EQ(
      of(R"("quant_method":"bitnet","linear_class":"autobitlinear")"),
      VendorFormat::bitnet
  );
  EXPECT_EQ(
      of(R"("quant_method":"compressed-tensors",)"
         R"("format":"mxfp4-pack-quantized")"),
      VendorFormat::packed_mxfp4
  );
  EXPECT_EQ(of(R"("bits":4)"), VendorFormat::none);
  EXPECT_EQ(
      vendor_format(Json::parse(
          R"({"text_config":{"quantization_config":{"quant_method":"bitnet"}}})",
          "c"
      )),
      VendorFormat::bitnet
  );
}

// A converted checkpoint keeps what the original said.
TEST(VendorFormat, MlxsOwnDeclarationComesFirst) {
  auto of = [](const std::string& rest) {
    return vendor_format(Json::parse(
        R"({"quantization":{"bits":4,"group_size":64},"quantization_config":{)" +
            rest + "}}",
        "c"
    ));
  };
  EXPECT_EQ(of(R"("quant_method":"gptq")"), VendorFormat::none);
  EXPECT_EQ(
      of(R"("quant_method":"fp8","weight_block_size":[128,128])"),
      VendorFormat::fp8_blocks
  );
}

struct Refused {
  std::string name;
  std::string fields;
  std::vector<std::string> message;
};

class VendorFormatRefused : public testing::TestWithParam<Refused> {};

TEST_P(VendorFormatRefused, NamesFieldAndValue) {
  std::vector<std::string> parts = GetParam().message;
  parts.push_back("DIR/config.json");
  expect_error(
      [] { vendor_format(declared(GetParam().fields)); },
      ErrorCode::unsupported,
      parts
  );
}

INSTANTIATE_TEST_SUITE_P(
    Each,
    VendorFormatRefused,
    testing::Values(
        Refused{
            "Fp8Format",
            R"("quant_method":"fp8","fmt":"e5m2","weight_block_size":[128,128])",
            {"quantization_config.fmt", "e5m2"}},
        Refused{
            "Fp8Block",
            R"("quant_method":"fp8","weight_block_size":[64,64])",
            {"quantization_config.weight_block_size", "[64,64]"}},
        Refused{
            "Fp8BlockOfThree",
            R"("quant_method":"fp8","weight_block_size":[128,128,1])",
            {"weight_block_size"}},
        Refused{
            "Fp8PerTensor",
            R"("quant_method":"fp8","activation_scheme":"static")",
            {"weight_block_size", "missing", "per tensor", "per channel"}},
        Refused{
            "ModelOptFp8",
            R"("quant_method":"modelopt","quant_algo":"FP8")",
            {"quantization_config.quant_algo", "FP8", "NVFP4"}},
        Refused{
            "BitnetOnline",
            R"("quant_method":"bitnet","quantization_mode":"online")",
            {"quantization_config.quantization_mode", "online"}},
        Refused{
            "Gptq",
            R"("quant_method":"gptq","bits":4)",
            {"quantization_config.quant_method", "gptq", "mlx_lm.convert"}},
        Refused{
            "Awq",
            R"("quant_method":"awq")",
            {"quantization_config.quant_method", "awq", "mlx_lm.convert"}},
        Refused{
            "PackQuantized",
            R"("quant_method":"compressed-tensors","format":"pack-quantized")",
            {"compressed-tensors", "pack-quantized"}},
        Refused{"NotAText", R"("quant_method":7)", {"quant_method", "7"}}
    ),
    [](const auto& refused) { return refused.param.name; }
);

// weights-and-quantization.md 15: R = 130 needs two rows of scales, and rows
// 128 and 129 use the second.
TEST(Fp8Blocks, RowsBeyondABlockUseTheNextScale) {
  std::vector<float> scales = {1, 2, 4, 8};
  WeightMap weights = map_of(
      {{"n.weight", filled(DType::f8_e4m3, {130, 256}, 0x38)},
       {"n.weight_scale_inv", make_weight(DType::f32, {2, 2}, scales)},
       {"norm.weight", filled(DType::bf16, {4})}}
  );
  EXPECT_EQ(convert_fp8_blocks(weights), 1);
  EXPECT_FALSE(weights.contains("n.weight_scale_inv"));
  EXPECT_EQ(weights.at("n.weight").describe(), "[130, 64] U32");
  EXPECT_EQ(weights.at("n.scales").describe(), "[130, 8] U8");
  LinearWeight bound = bind_linear(weights, "n", 130, 256, {});
  EXPECT_EQ(bound.format.mode, QuantMode::mxfp8);
  std::vector<float> values = dequantize(bound);
  for (int64_t r : {0, 127, 128, 129}) {
    for (int64_t c : {0, 127, 128, 255}) {
      float expected = scales[static_cast<size_t>(r / 128 * 2 + c / 128)];
      EXPECT_EQ(values[static_cast<size_t>(r * 256 + c)], expected)
          << r << " " << c;
    }
  }
  EXPECT_EQ(convert_fp8_blocks(weights), 0);
}

TEST(Fp8Blocks, WrongPairsAreNamed) {
  auto refused = [](Weight weight,
                    Weight sidecar,
                    const std::vector<std::string>& parts) {
    WeightMap weights = map_of(
        {{"a.n.weight", std::move(weight)},
         {"a.n.weight_scale_inv", std::move(sidecar)}}
    );
    expect_error(
        [&] { convert_fp8_blocks(weights); }, ErrorCode::invalid_input, parts
    );
  };
  Weight one = filled(DType::f32, {1, 1});
  refused(filled(DType::u8, {64}), one, {"a.n.weight", "[64] U8"});
  refused(filled(DType::u8, {2, 64, 64}), one, {"a.n.weight", "[2, 64, 64]"});
  refused(filled(DType::bf16, {64, 64}), one, {"a.n.weight", "BF16"});
  refused(filled(DType::u8, {64, 48}), one, {"a.n.weight", "48"});
  refused(
      filled(DType::u8, {130, 256}),
      one,
      {"a.n.weight_scale_inv", "[2, 2]", "[130, 256]", "[1, 1] F32"}
  );
  refused(
      filled(DType::u8, {64, 64}),
      filled(DType::i32, {1, 1}),
      {"a.n.weight_scale_inv", "I32"}
  );
  WeightMap alone = map_of({{"a.n.weight_scale_inv", one}});
  expect_error(
      [&] { convert_fp8_blocks(alone); },
      ErrorCode::invalid_input,
      {"a.n.weight_scale_inv", "no weight"}
  );
}

// Byte bits 2i and 2i + 1 of row r are row r + i * rows / 4, plus one.
TEST(Bitnet, TernaryRowsKeepTheirValues) {
  std::vector<uint8_t> packed;
  for (int i = 0; i < 2 * 32; ++i) {
    int codes[] = {i % 3, (i / 3) % 3, (i / 5) % 3, (i + 1) % 3};
    packed.push_back(static_cast<uint8_t>(
        codes[0] | codes[1] << 2 | codes[2] << 4 | codes[3] << 6
    ));
  }
  for (bool multiply : {true, false}) {
    WeightMap weights = map_of(
        {{"p.weight", bytes(DType::u8, {2, 32}, packed)},
         {"p.weight_scale",
          make_weight(DType::f32, {1}, std::vector<float>{2.5F})}}
    );
    EXPECT_EQ(convert_bitnet(weights, multiply), 1);
    LinearWeight bound = bind_linear(weights, "p", 8, 32, {});
    EXPECT_EQ(bound.format.describe(), "affine 2-bit group 32");
    std::vector<float> values = dequantize(bound);
    float scale = multiply ? 2.5F : 1.0F / 2.5F;
    for (size_t row = 0; row < 8; ++row) {
      for (size_t c = 0; c < 32; ++c) {
        int code = packed[row % 2 * 32 + c] >> (row / 2 * 2) & 3;
        EXPECT_EQ(values[row * 32 + c], static_cast<float>(code - 1) * scale);
      }
    }
  }
}

TEST(Bitnet, WrongPlanesAreNamed) {
  auto refused = [](Weight weight,
                    Weight scale,
                    const std::vector<std::string>& parts) {
    WeightMap weights = map_of(
        {{"p.weight", std::move(weight)}, {"p.weight_scale", std::move(scale)}}
    );
    expect_error(
        [&] { convert_bitnet(weights, true); }, ErrorCode::invalid_input, parts
    );
  };
  Weight one = filled(DType::bf16, {1});
  refused(filled(DType::bf16, {4, 64}), one, {"p.weight", "[4, 64] BF16"});
  refused(filled(DType::u8, {4, 48}), one, {"p.weight", "48"});
  refused(
      filled(DType::u8, {4, 64}),
      filled(DType::bf16, {2}),
      {"p.weight_scale", "[2] BF16"}
  );
}

TEST(PackedMxfp4, IsMlxsPlanesUnderOtherNames) {
  WeightMap weights = map_of(
      {{"p.weight_packed", filled(DType::u8, {3, 32}, 0x72)},
       {"p.weight_scale", filled(DType::u8, {3, 2}, 0x80)}}
  );
  EXPECT_EQ(rename_packed_mxfp4(weights), 1);
  QuantConfig declared;
  declared.declare(QuantMode::mxfp4);
  LinearWeight bound = bind_linear(weights, "p", 3, 64, declared);
  std::vector<float> values = dequantize(bound);
  EXPECT_EQ(values[0], 2.0F);
  EXPECT_EQ(values[1], 12.0F);
  EXPECT_EQ(rename_packed_mxfp4(weights), 0);
}

TEST(PackedMxfp4, WrongPlanesAreNamed) {
  WeightMap alone = map_of({{"e.weight_packed", filled(DType::u8, {3, 32})}});
  expect_error(
      [&] { rename_packed_mxfp4(alone); },
      ErrorCode::invalid_input,
      {"e.weight_packed", "weight_scale"}
  );
  auto refused = [](Weight packed,
                    Weight scale,
                    const std::vector<std::string>& parts) {
    WeightMap weights = map_of(
        {{"e.weight_packed", std::move(packed)},
         {"e.weight_scale", std::move(scale)}}
    );
    expect_error(
        [&] { rename_packed_mxfp4(weights); }, ErrorCode::invalid_input, parts
    );
  };
  Weight scale = filled(DType::u8, {3, 2});
  refused(filled(DType::i32, {3, 32}), scale, {"e.weight_packed", "I32"});
  refused(filled(DType::u8, {3, 30}), scale, {"multiple of 4", "[3, 30]"});
  refused(
      filled(DType::u8, {3, 32}),
      filled(DType::f32, {3, 2}),
      {"e.weight_scale", "F32"}
  );
  refused(
      filled(DType::u8, {3, 32}),
      filled(DType::u8, {2, 2}),
      {"e.weight_scale", "[2, 2] U8", "[3, 32] U8"}
  );
}

WeightMap modelopt_layer() {
  std::vector<uint8_t> scales = {0x38, 0x40};  // 1 and 2
  return map_of(
      {{"p.weight", filled(DType::u8, {1, 16}, 0x72)},
       {"p.weight_scale", bytes(DType::f8_e4m3, {1, 2}, scales)},
       {"p.weight_scale_2",
        make_weight(DType::f32, {}, std::vector<float>{0.5F})},
       {"p.input_scale", filled(DType::f32, {})}}
  );
}

TEST(ModelOpt, PlanesStayAsTheyAreWithAGlobalScale) {
  WeightMap weights = modelopt_layer();
  const std::byte* before = weights.at("p.weight").bytes().data();
  Nvfp4Result result =
      convert_modelopt_nvfp4(weights, {}, Nvfp4Route::direct, 64);
  EXPECT_EQ(result.repacked, 1);
  EXPECT_EQ(weights.size(), 3u);
  EXPECT_EQ(weights.at("p.weight").bytes().data(), before);
  LinearWeight bound = bind_linear(weights, "p", 1, 32, {});
  EXPECT_EQ(bound.format.mode, QuantMode::nvfp4);
  EXPECT_EQ(bound.global_scale, 0.5F);
  std::vector<float> values = dequantize(bound);
  EXPECT_EQ(values[0], 0.5F);
  EXPECT_EQ(values[1], 3.0F);
  EXPECT_EQ(values[16], 1.0F);
  EXPECT_EQ(values[17], 6.0F);
}

TEST(ModelOpt, DenseRoutesKeepTheValues) {
  for (Nvfp4Route route :
       {Nvfp4Route::dense_native, Nvfp4Route::dense_affine}) {
    WeightMap weights = modelopt_layer();
    convert_modelopt_nvfp4(weights, {}, route, 64);
    bool affine = route == Nvfp4Route::dense_affine;
    EXPECT_EQ(weights.contains("p.biases"), affine);
    EXPECT_FALSE(weights.contains("p.global_scale"));
    LinearWeight bound = bind_linear(weights, "p", 1, 32, {});
    EXPECT_EQ(bound.format.group, affine ? 32 : 16);
    std::vector<float> values = dequantize(bound);
    float bound_of_error = affine ? 0.2F : 1e-6F;
    EXPECT_NEAR(values[0], 0.5F, bound_of_error);
    EXPECT_NEAR(values[17], 6.0F, bound_of_error);
  }
}

TEST(ModelOpt, WrappedKeysGetMlxsNames) {
  Weight one = filled(DType::bf16, {1});
  WeightMap weights = map_of(
      {{"model.language_model.norm.weight", one},
       {"model.vision_tower.x", one},
       {"model.embed_vision.y", one},
       {"model.lm_head.weight", one},
       {"other", one}}
  );
  Nvfp4Result result =
      convert_modelopt_nvfp4(weights, {}, Nvfp4Route::direct, 64);
  EXPECT_EQ(result.renamed, 4);
  for (const char* name :
       {"language_model.model.norm.weight",
        "vision_tower.x",
        "embed_vision.y",
        "lm_head.weight",
        "other"}) {
    EXPECT_TRUE(weights.contains(name)) << name;
  }
  WeightMap plain = map_of({{"model.vision_tower.x", one}});
  EXPECT_EQ(
      convert_modelopt_nvfp4(plain, {}, Nvfp4Route::direct, 64).renamed, 0
  );
}

TEST(ModelOpt, UnusableLayersAreLeftAloneAndRefusedOnRocm) {
  for (const char* change : {"weight_scale", "weight_scale_2", "weight"}) {
    WeightMap weights = modelopt_layer();
    if (std::string(change) == "weight_scale") {
      weights.erase("p.weight_scale");
    } else if (std::string(change) == "weight_scale_2") {
      weights.insert("p.weight_scale_2", filled(DType::f32, {2}));
    } else {
      weights.insert("p.weight", filled(DType::u8, {1, 12}));
    }
    {
      LogCapture log;
      WeightMap kept = weights;
      Nvfp4Result result =
          convert_modelopt_nvfp4(kept, {}, Nvfp4Route::direct, 64);
      EXPECT_EQ(result.unusable, 1);
      EXPECT_EQ(kept.at("p.weight").dtype, DType::u8);
      EXPECT_EQ(log.count("p: left alone"), 1);
    }
    expect_error(
        [&] {
          convert_modelopt_nvfp4(
              weights, {DeviceKind::rocm}, Nvfp4Route::dense_affine, 64
          );
        },
        ErrorCode::invalid_input,
        {"[modelopt] p: ", "DIR"}
    );
  }
}

TEST(ModelOpt, RouteFollowsTheDevice) {
  using Kind = DeviceKind;
  struct Row {
    Kind kind;
    bool dense;
    bool native;
    Nvfp4Route route;
  };
  constexpr auto kDirect = Nvfp4Route::direct;
  constexpr auto kNative = Nvfp4Route::dense_native;
  constexpr auto kAffine = Nvfp4Route::dense_affine;
  for (const Row& row :
       {Row{Kind::cpu, false, false, kDirect},
        Row{Kind::cpu, false, true, kDirect},
        Row{Kind::cpu, true, false, kAffine},
        Row{Kind::cpu, true, true, kNative},
        Row{Kind::metal, false, false, kDirect},
        Row{Kind::metal, true, false, kAffine},
        Row{Kind::metal, true, true, kNative},
        Row{Kind::cuda, false, false, kDirect},
        Row{Kind::cuda, true, false, kNative},
        Row{Kind::rocm, false, false, kAffine},
        Row{Kind::rocm, true, true, kAffine}}) {
    EXPECT_EQ(nvfp4_route({row.kind}, row.dense, row.native), row.route);
  }
}

TEST(WrapperNames, AreTakenOff) {
  Weight one = filled(DType::bf16, {1});
  for (const char* prefix :
       {"language_model.model.", "model.language_model."}) {
    WeightMap weights = map_of(
        {{std::string(prefix) + "norm.weight", one},
         {"language_model.lm_head.weight", one},
         {"vision_tower.x", one}}
    );
    EXPECT_EQ(unwrap_text_names(weights), 2);
    EXPECT_TRUE(weights.contains("model.norm.weight"));
    EXPECT_TRUE(weights.contains("lm_head.weight"));
    EXPECT_TRUE(weights.contains("vision_tower.x"));
    EXPECT_EQ(unwrap_text_names(weights), 0);
  }
  WeightMap own = map_of(
      {{"model.layers.0.x", one}, {"language_model.model.layers.0.x", one}}
  );
  EXPECT_EQ(unwrap_text_names(own), 0);
}

TEST(PlainTypes, BecomeOnesThatBackendsHave) {
  std::vector<double> doubles = {1.5, -0.1};
  WeightMap weights = map_of(
      {{"a.weight", make_weight(DType::f64, {2}, doubles)},
       {"b.weight", bytes(DType::f8_e4m3, {4}, {0x38, 0xb8, 0x01, 0x7e})},
       {"c.weight", bytes(DType::f8_e5m2, {4}, {0x3c, 0xbc, 0x01, 0x7b})},
       {"d.weight", filled(DType::u32, {1, 4})},
       {"d.scales", filled(DType::f8_e4m3, {1, 2})}}
  );
  convert_plain_types(weights);
  EXPECT_EQ(weights.at("a.weight").dtype, DType::f32);
  EXPECT_EQ(
      to_float(weights.at("a.weight")), (std::vector<float>{1.5F, -0.1F})
  );
  EXPECT_EQ(
      to_float(weights.at("b.weight")),
      (std::vector<float>{1, -1, 0x1p-9F, 448})
  );
  EXPECT_EQ(
      to_float(weights.at("c.weight")),
      (std::vector<float>{1, -1, 0x1p-16F, 57344})
  );
  EXPECT_EQ(weights.at("d.scales").dtype, DType::f8_e4m3);
}

// Without its scale an FP8 matrix would give wrong numbers.
TEST(PlainTypes, Fp8WithAScaleBesideItIsRefused) {
  for (const char* sidecar :
       {"weight_scale", "weight_scale_inv", "scale_weight"}) {
    WeightMap weights = map_of(
        {{"a.q.weight", filled(DType::f8_e4m3, {2, 2})},
         {std::string("a.q.") + sidecar, filled(DType::f32, {1})}}
    );
    expect_error(
        [&] { convert_plain_types(weights); },
        ErrorCode::unsupported,
        {"a.q.weight", "F8_E4M3", sidecar}
    );
  }
}

}  // namespace
}  // namespace mlxcel::test
