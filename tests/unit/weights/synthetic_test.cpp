#include "mlxcel/weights/synthetic.h"

#include <bit>
#include <cmath>
#include <filesystem>

#include "mlxcel/core/numbers.h"
#include "mlxcel/weights/quantization.h"
#include "mlxcel/weights/shards.h"
#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

std::vector<float> fill(
    const std::string& name, uint64_t seed, SyntheticRange range, size_t count
) {
  std::vector<float> values(count);
  fill_synthetic(name, seed, range, values);
  return values;
}

// The known answers of tests/golden/README.md.
TEST(Synthetic, KnownAnswers) {
  EXPECT_EQ(
      fill("a", 0, {0.0f, 1.0f}, 6),
      (std::vector<float>{
          0.65234375f,
          0.27734375f,
          -0.1650390625f,
          -0.3828125f,
          -0.435546875f,
          0.625f})
  );
  TensorSpec norm{"model.norm.weight", {5}, TensorRole::vector};
  EXPECT_EQ(
      fill(norm.name, 7, synthetic_range(norm), 5),
      (std::vector<float>{
          1.078125f, 0.8515625f, 1.2109375f, 1.234375f, 1.0390625f})
  );
}

TEST(Synthetic, DependsOnNameSeedAndIndexAlone) {
  SyntheticRange range{0.0f, 1.0f};
  auto a = fill("a", 0, range, 1000);
  auto shorter = fill("a", 0, range, 7);
  EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), a.begin()));
  EXPECT_NE(fill("b", 0, range, 1000), a);
  EXPECT_NE(fill("a", 1, range, 1000), a);
}

TEST(Synthetic, ValuesAreBfloat16InTheirRange) {
  SyntheticRange range{0.0f, 0.3f};
  double sum = 0;
  double squares = 0;
  auto values = fill("w", 3, range, 100000);
  for (float value : values) {
    ASSERT_EQ(bf16_to_float(float_to_bf16(value)), value);
    ASSERT_GE(value, -0.3f);
    ASSERT_LT(value, 0.3f);
    sum += value;
    squares += double{value} * value;
  }
  double count = static_cast<double>(values.size());
  EXPECT_NEAR(sum / count, 0.0, 2e-3);
  EXPECT_NEAR(std::sqrt(squares / count), 0.3 / std::sqrt(3.0), 2e-3);
}

TEST(Synthetic, RangesFollowNameAndShape) {
  auto scale = [](const std::string& name, std::vector<int64_t> shape) {
    return synthetic_range({name, std::move(shape)}).scale;
  };
  EXPECT_EQ(scale("a.weight", {7, 48}), 0.25f);
  EXPECT_EQ(scale("experts.weight", {9, 7, 48}), 0.25f);
  EXPECT_EQ(scale("conv1d.weight", {7, 4, 12}), 0.5f);
  EXPECT_EQ(scale("conv1d.weight", {7, 12, 1}), 0.5f);
  EXPECT_EQ(scale("patch.weight", {7, 4, 4, 3}), 0.25f);
  EXPECT_EQ(synthetic_range({"a.bias", {7}}).centre, 0.0f);
  EXPECT_EQ(synthetic_range({"norm.weight", {7}}).centre, 1.0f);
}

const TensorTable kTable = {
    {"embed.weight", {50, 128}},
    {"odd.weight", {3, 96}},
    {"lone_matrix", {2, 64}},
    {"norm.weight", {128}, TensorRole::vector},
    {"experts.weight", {2, 3, 64}},
};

TEST(WriteSynthetic, DenseCheckpointHoldsTheValues) {
  for (DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    TempDir dir;
    SyntheticOptions options;
    options.dtype = dtype;
    options.seed = 11;
    write_synthetic(kTable, dir.path(), options);
    WeightMap weights = load_weights(dir.path());
    EXPECT_EQ(weights.size(), kTable.size());
    for (const TensorSpec& tensor : kTable) {
      const Weight& weight = weights.at(tensor.name);
      EXPECT_EQ(weight.dtype, dtype);
      EXPECT_EQ(weight.shape, tensor.shape);
      auto wanted = fill(
          tensor.name,
          11,
          synthetic_range(tensor),
          static_cast<size_t>(weight.elements())
      );
      if (dtype == DType::f16) {
        for (float& value : wanted) {
          value = f16_to_float(float_to_f16(value));
        }
      }
      EXPECT_EQ(to_float(weight), wanted) << tensor.name;
    }
  }
}

TEST(WriteSynthetic, QuantisedCheckpointHoldsThePlanes) {
  for (int bits : {2, 3, 4, 5, 6, 8}) {
    TempDir dir;
    SyntheticOptions options;
    options.bits = bits;
    write_synthetic(kTable, dir.path(), options);
    WeightMap weights = load_weights(dir.path());
    EXPECT_EQ(weights.size(), kTable.size() + 4);
    EXPECT_TRUE(weights.contains("experts.scales"));
    EXPECT_FALSE(weights.contains("odd.scales"));
    EXPECT_EQ(weights.at("lone_matrix").dtype, DType::bf16);
    LinearWeight embed = bind_linear(weights, "embed", 50, 128, {});
    EXPECT_EQ(
        embed.format, (WeightFormat{QuantMode::affine, DType::bf16, bits, 64})
    );
    auto values = fill("embed.weight", 0, synthetic_range(kTable[0]), 6400);
    AffinePlanes planes = quantize_affine(values, 50, 128, bits, 64);
    auto codes = embed.codes.bytes();
    EXPECT_EQ(
        std::string(reinterpret_cast<const char*>(codes.data()), codes.size()),
        bytes_of(planes.codes)
    );
    for (float& scale : planes.scales) {
      scale = bf16_to_float(float_to_bf16(scale));
    }
    EXPECT_EQ(to_float(*embed.scales), planes.scales);
  }
}

// Batches and pieces of the generator meet without a seam.
TEST(WriteSynthetic, TensorOfSeveralBatches) {
  TempDir dir;
  TensorTable table = {{"big.weight", {4100, 1088}}};
  write_synthetic(table, dir.path(), {});
  WeightMap weights = load_weights(dir.path());
  EXPECT_EQ(
      to_float(weights.at("big.weight")),
      fill("big.weight", 0, synthetic_range(table[0]), 4100 * 1088)
  );
}

TEST(WriteSynthetic, WrongOptionsAreRefusedAndNothingIsLeft) {
  TempDir dir;
  for (auto [bits, group, dtype] :
       {std::tuple{7, 64, DType::bf16},
        std::tuple{1, 64, DType::bf16},
        std::tuple{4, 48, DType::bf16},
        std::tuple{4, 64, DType::u8}}) {
    SyntheticOptions options{bits, group, dtype, 0};
    expect_error(
        [&] { write_synthetic(kTable, dir.path(), options); },
        ErrorCode::usage,
        {"synthetic"}
    );
  }
  TensorTable huge = {{"huge.weight", {int64_t{1} << 40, int64_t{1} << 40}}};
  expect_error(
      [&] { write_synthetic(huge, dir.path(), {}); },
      ErrorCode::invalid_input,
      {"huge.weight"}
  );
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  EXPECT_THROW(write_synthetic(kTable, dir.at("absent"), {}), Error);
}

}  // namespace
}  // namespace mlxcel::test
