#include <fmt/format.h>

#include <map>

#include "mlxcel/core/json.h"
#include "mlxcel/weights/quantization.h"
#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

constexpr const char* kPath = "model.layers.0.mlp.gate";

Weight zeros(DType dtype, std::vector<int64_t> shape) {
  int64_t count = dtype_size(dtype);
  for (int64_t dim : shape) {
    count *= dim;
  }
  return weight_at_offset(
      dtype, std::move(shape), std::string(static_cast<size_t>(count), '\0'), 0
  );
}

using Planes = std::map<std::string, Weight>;

WeightMap map_of(const Planes& planes) {
  WeightMap weights;
  weights.origin = "DIR";
  for (const auto& [plane, weight] : planes) {
    weights.insert(std::string(kPath) + "." + plane, weight);
  }
  return weights;
}

QuantConfig declared(const std::string& fields) {
  return QuantConfig::from_config(
      Json::parse(R"({"quantization":{)" + fields + "}}", "config.json")
  );
}

LinearWeight bind_planes(
    const Planes& planes,
    int64_t rows,
    int64_t cols,
    const QuantConfig& quantization = {}
) {
  return bind_linear(map_of(planes), kPath, rows, cols, quantization);
}

Planes affine(
    int64_t rows, int64_t words, int64_t groups, DType dtype = DType::bf16
) {
  return {
      {"weight", zeros(DType::u32, {rows, words})},
      {"scales", zeros(dtype, {rows, groups})},
      {"biases", zeros(dtype, {rows, groups})}};
}

Planes block(int64_t rows, int64_t words, int64_t groups) {
  return {
      {"weight", zeros(DType::u32, {rows, words})},
      {"scales", zeros(DType::u8, {rows, groups})}};
}

TEST(BindLinear, Dense) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    LinearWeight linear = bind_planes(
        {{"weight", zeros(dtype, {3, 5})}, {"bias", zeros(DType::f32, {3})}},
        3,
        5,
        declared(R"("bits":4)")
    );
    EXPECT_EQ(linear.format, (WeightFormat{QuantMode::dense, dtype, 0, 0}));
    EXPECT_TRUE(linear.bias);
    EXPECT_FALSE(linear.scales);
    EXPECT_EQ(linear.path, kPath);
    EXPECT_EQ(linear.rows, 3);
    EXPECT_EQ(linear.cols, 5);
  }
}

TEST(BindLinear, EveryAffineWidthFromShapes) {
  for (int bits : {1, 2, 3, 4, 5, 6, 8}) {
    for (int group : {32, 64, 128}) {
      LogCapture log;
      LinearWeight linear = bind_planes(
          affine(4, 256 * bits / 32, 256 / group),
          4,
          256,
          declared(fmt::format(R"("bits":{},"group_size":{})", bits, group))
      );
      EXPECT_EQ(
          linear.format,
          (WeightFormat{QuantMode::affine, DType::bf16, bits, group})
      );
      EXPECT_TRUE(linear.biases);
      EXPECT_TRUE(LogCapture::lines().empty());
    }
  }
}

// lablup/mlxcel #291: an 8-bit embedding in a checkpoint that says 4 bits.
TEST(BindLinear, ShapesWinOverTheDeclarationWithAWarning) {
  LogCapture log;
  QuantConfig config = declared(R"("bits":4,"group_size":64)");
  LinearWeight linear = bind_planes(affine(16, 176, 11), 16, 704, config);
  EXPECT_EQ(linear.format.bits, 8);
  EXPECT_EQ(linear.format.group, 64);
  ASSERT_EQ(LogCapture::lines().size(), 1u);
  for (const char* part :
       {kPath,
        "mlxcel::quant",
        "bits 4 group 64",
        "bits 8 group 64",
        "OptiQ"}) {
    EXPECT_EQ(LogCapture::count(part), 1) << part;
  }
  EXPECT_EQ(bind_planes(affine(4, 32, 8), 4, 256, config).format.group, 32);
}

TEST(BindLinear, DeclaredOverrideIsNoMismatch) {
  LogCapture log;
  bind_planes(
      affine(4, 64, 4),
      4,
      256,
      declared(R"("language_model.model.layers.0.mlp.gate":{"bits":8,)"
               R"("group_size":64})")
  );
  bind_planes(
      affine(4, 64, 4), 4, 256
  );  // nothing declared, nothing to contradict
  EXPECT_TRUE(LogCapture::lines().empty());
}

TEST(BindLinear, ManyMismatchesAreSummedUp) {
  LogCapture log;
  {
    QuantConfig config = declared(R"("bits":4)");
    QuantConfig copy = config;
    for (int i = 0; i < 20; ++i) {
      bind_planes(affine(4, 64, 4), 4, 256, i % 2 == 0 ? config : copy);
    }
    EXPECT_EQ(LogCapture::lines().size(), 8u);
  }
  ASSERT_EQ(LogCapture::lines().size(), 9u);
  EXPECT_EQ(LogCapture::count("12 more tensors"), 1);
}

TEST(BindLinear, BlockFloatByDeclaration) {
  LogCapture log;
  auto mode = [](const Planes& planes, const char* name) {
    return bind_planes(
               planes, 2, 64, declared(fmt::format(R"("mode":"{}")", name))
    )
        .format;
  };
  EXPECT_EQ(
      mode(block(2, 8, 2), "mxfp4"),
      (WeightFormat{QuantMode::mxfp4, DType::u8, 4, 32})
  );
  EXPECT_EQ(
      mode(block(2, 16, 2), "mxfp8"),
      (WeightFormat{QuantMode::mxfp8, DType::u8, 8, 32})
  );
  EXPECT_EQ(
      mode(block(2, 8, 4), "nvfp4"),
      (WeightFormat{QuantMode::nvfp4, DType::u8, 4, 16})
  );
  EXPECT_TRUE(LogCapture::lines().empty());
}

// lablup/mlxcel #334: no mode in the config, no biases in the file.
TEST(BindLinear, BlockFloatByShapesWhereNoModeIsDeclared) {
  EXPECT_EQ(bind_planes(block(2, 8, 2), 2, 64).format.mode, QuantMode::mxfp4);
  EXPECT_EQ(bind_planes(block(2, 16, 2), 2, 64).format.mode, QuantMode::mxfp8);
  EXPECT_EQ(bind_planes(block(2, 8, 4), 2, 64).format.mode, QuantMode::nvfp4);
  Planes typed = block(2, 8, 2);
  typed["scales"] = zeros(DType::f8_e8m0, {2, 2});
  EXPECT_EQ(bind_planes(typed, 2, 64).format.dtype, DType::u8);
}

struct Fault {
  std::string name;
  Planes planes;
  int64_t rows;
  int64_t cols;
  std::string config;
  std::vector<std::string> message;
};

Planes with(Planes planes, const std::string& plane, Weight weight) {
  planes[plane] = std::move(weight);
  return planes;
}

std::vector<Fault> faults() {
  return {
      {"DenseShape",
       {{"weight", zeros(DType::f16, {3, 5})}},
       5,
       3,
       "",
       {".weight", "[3, 5] F16", "[5, 3]"}},
      {"DenseRank",
       {{"weight", zeros(DType::f16, {15})}},
       3,
       5,
       "",
       {".weight", "[15] F16"}},
      {"DenseDtype",
       {{"weight", zeros(DType::i32, {3, 5})}},
       3,
       5,
       "",
       {".weight", "I32", ".scales"}},
      {"PackedWithoutScales",
       {{"weight", zeros(DType::u32, {3, 8})}},
       3,
       64,
       "",
       {".weight", "U32", "without .scales"}},
      {"BiasShape",
       {{"weight", zeros(DType::f16, {3, 5})},
        {"bias", zeros(DType::f16, {5})}},
       3,
       5,
       "",
       {".bias", "[5] F16", "[3]"}},
      {"BiasDtype",
       {{"weight", zeros(DType::f16, {3, 5})}, {"bias", zeros(DType::u8, {3})}},
       3,
       5,
       "",
       {".bias", "U8"}},
      {"WeightNotU32",
       with(affine(2, 8, 1), "weight", zeros(DType::u8, {2, 32})),
       2,
       64,
       "",
       {".weight", "expected U32", "[2, 32] U8"}},
      {"ScalesRank",
       with(affine(2, 8, 1), "scales", zeros(DType::bf16, {2})),
       2,
       64,
       "",
       {"[2] BF16", "[2, 8] U32"}},
      {"ScalesRows",
       with(affine(2, 8, 1), "scales", zeros(DType::bf16, {3, 1})),
       2,
       64,
       "",
       {"[3, 1] BF16", "[2, 8] U32"}},
      {"ExpertStack",
       {{"weight", zeros(DType::u32, {1, 2, 8})},
        {"scales", zeros(DType::bf16, {1, 2, 1})},
        {"biases", zeros(DType::bf16, {1, 2, 1})}},
       2,
       64,
       "",
       {"[1, 2, 8] U32"}},
      {"Rows", affine(2, 8, 1), 3, 64, "", {"3 rows", "[2, 8] U32"}},
      {"NoWords", affine(2, 0, 1), 2, 64, "", {"empty", "[2, 0] U32"}},
      {"NoGroups", affine(2, 8, 0), 2, 64, "", {"empty", "[2, 0] BF16"}},
      {"BiasesShape",
       with(affine(2, 16, 2), "biases", zeros(DType::bf16, {2, 1})),
       2,
       128,
       "",
       {".biases", "[2, 2] BF16", "[2, 1] BF16"}},
      {"GroupsDoNotDivide",
       affine(2, 24, 5),
       2,
       192,
       R"("bits":4,"group_size":64)",
       {"5 scales", "192", "bits 4 group 64", "[2, 24] U32", "[2, 5] BF16"}},
      {"NoIntegerBits",
       affine(2, 9, 1),
       2,
       64,
       R"("bits":4,"group_size":64)",
       {"no integer bit width", "bits 4 group 64", "[2, 9] U32", "[2, 1]"}},
      {"SevenBits",
       affine(2, 14, 1),
       2,
       64,
       R"("bits":4,"group_size":64)",
       {"7 bits", "bits 4 group 64", "[2, 14] U32"}},
      {"SixteenBits", affine(2, 32, 1), 2, 64, "", {"16 bits", "[2, 32] U32"}},
      {"MoreWordsThanColumns", affine(2, 999, 1), 2, 64, "", {"no integer"}},
      {"GroupOfSixteen", affine(2, 8, 4), 2, 64, "", {"groups of 16"}},
      {"ScalesOfIntegers",
       with(affine(2, 8, 1), "scales", zeros(DType::i32, {2, 1})),
       2,
       64,
       "",
       {".scales", "I32"}},
      {"ScalesAndBiasesDiffer",
       with(affine(2, 8, 1), "biases", zeros(DType::f32, {2, 1})),
       2,
       64,
       "",
       {"BF16 and F32"}},
      {"AffineWithoutBiases",
       {{"weight", zeros(DType::u32, {2, 8})},
        {"scales", zeros(DType::bf16, {2, 1})}},
       2,
       64,
       "",
       {".biases", "missing"}},
      {"OneBitWithoutBiases",
       {{"weight", zeros(DType::u32, {2, 2})},
        {"scales", zeros(DType::bf16, {2, 1})}},
       2,
       64,
       "",
       {".biases", "missing", "1-bit", "always affine"}},
      {"OneBitWithByteScales",
       block(2, 2, 2),
       2,
       64,
       "",
       {".biases", "1-bit", "always affine"}},
      {"GlobalScaleOfAffine",
       with(affine(2, 8, 1), "global_scale", zeros(DType::f32, {1})),
       2,
       64,
       "",
       {".global_scale", "nvfp4", "[1] F32"}},
      {"GlobalScaleOfTwo",
       with(block(2, 8, 4), "global_scale", zeros(DType::f32, {2})),
       2,
       64,
       "",
       {".global_scale", "[2] F32"}},
      {"BlockFloatWithBiases",
       affine(2, 8, 2),
       2,
       64,
       R"("mode":"mxfp4")",
       {".biases", "mxfp4"}},
      {"BlockFloatWithFloatScales",
       {{"weight", zeros(DType::u32, {2, 8})},
        {"scales", zeros(DType::bf16, {2, 2})}},
       2,
       64,
       R"("mode":"mxfp4")",
       {".scales", "mxfp4", "BF16"}},
      {"BlockFloatGroup",
       block(2, 8, 1),
       2,
       64,
       R"("mode":"mxfp4")",
       {"mxfp4", "groups of 32", "64"}},
      {"BlockFloatBits",
       block(2, 16, 2),
       2,
       64,
       R"("mode":"mxfp4")",
       {"mxfp4", "4 bits", "8"}},
      {"NothingFitsTheShapes", block(2, 16, 4), 2, 64, "", {"mxfp8", "16"}},
      {"NegativeColumns", affine(2, 8, 1), 2, -64, "", {"positive"}},
  };
}

class BindLinearFault : public testing::TestWithParam<Fault> {};

TEST_P(BindLinearFault, IsRefused) {
  const Fault& fault = GetParam();
  std::vector<std::string> parts = fault.message;
  parts.insert(parts.end(), {kPath, "memory"});
  QuantConfig config =
      fault.config.empty() ? QuantConfig{} : declared(fault.config);
  expect_error(
      [&] { bind_planes(fault.planes, fault.rows, fault.cols, config); },
      ErrorCode::invalid_input,
      parts
  );
}

INSTANTIATE_TEST_SUITE_P(
    Each,
    BindLinearFault,
    testing::ValuesIn(faults()),
    [](const auto& fault) { return fault.param.name; }
);

TEST(BindLinear, MissingWeightIsNamed) {
  expect_error(
      [] {
        bind_planes({{"scales", zeros(DType::bf16, {2, 1})}}, 2, 64);
      },
      ErrorCode::not_found,
      {std::string(kPath) + ".weight", "DIR"}
  );
}

}  // namespace
}  // namespace mlxcel::test
