#include "mlxcel/weights/tensor_listing.h"

#include <fmt/format.h>

#include "mlxcel/loading/estimate/weight_summary.h"
#include "mlxcel/weights/shards.h"
#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

constexpr const char* kIndex = "model.safetensors.index.json";

std::string shard_of(const std::string& tensor, const std::string& bytes) {
  return safetensors_file(
      {{tensor, "U8", {static_cast<int64_t>(bytes.size())}, bytes}}
  );
}

TensorEntry entry(
    const std::string& name,
    DType dtype,
    const std::vector<int64_t>& shape,
    uint64_t bytes
) {
  return {name, dtype, shape, 0, bytes};
}

TEST(TensorListing, FindsEachOfMany) {
  TensorListing listing;
  EXPECT_EQ(listing.find("x"), TensorListing::kNone);
  for (int i = 0; i < 5000; ++i) {
    listing.add(entry(fmt::format("t{}", i), DType::u8, {i}, 1));
  }
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(listing.find(fmt::format("t{}", i)), static_cast<size_t>(i));
  }
  EXPECT_EQ(listing.find("t5000"), TensorListing::kNone);
  EXPECT_EQ(listing.entry(""), nullptr);
  EXPECT_EQ(listing.bytes(), 5000u);
  EXPECT_EQ(listing.replaced(), 0u);
  listing.add(entry("t7", DType::f32, {1}, 4));
  EXPECT_EQ(listing.replaced(), 1u);
  EXPECT_EQ(listing.tensors().size(), 5000u);
  EXPECT_EQ(listing.entry("t7")->dtype, DType::f32);
  EXPECT_EQ(listing.bytes(), 5003u);
}

TEST(TensorListing, OfADirectoryIsWhatALoadMaps) {
  TempDir dir;
  dir.write("a.safetensors", shard_of("x", "1"));
  dir.write("b.safetensors", shard_of("y", "12"));
  dir.write("c.safetensors", shard_of("x", "123"));
  TensorListing listing = list_tensors(dir.path());
  EXPECT_EQ(listing.shards, list_shards(dir.path()));
  WeightMap weights = load_weights(dir.path());
  ASSERT_EQ(listing.tensors().size(), weights.size());
  for (const TensorEntry& tensor : listing.tensors()) {
    EXPECT_EQ(tensor.shape, weights.at(tensor.name).shape);
  }
  EXPECT_EQ(listing.replaced(), 1u);
  EXPECT_EQ(listing.bytes(), 5u);
}

TEST(TensorListing, FailsAsALoadDoes) {
  TempDir dir;
  expect_error(
      [&] { list_tensors(dir.path()); }, ErrorCode::not_found, {".safetensors"}
  );
  dir.write("a.safetensors", shard_of("x", "1"));
  dir.write(kIndex, R"({"weight_map":{"z":"a.safetensors"}})");
  expect_error(
      [&] { list_tensors(dir.path()); },
      ErrorCode::invalid_input,
      {kIndex, "z", "does not hold"}
  );
  dir.write(kIndex, R"({"weight_map":{"x":"a.safetensors",
      "y":"b.safetensors"}})");
  expect_error(
      [&] { list_tensors(dir.path()); },
      ErrorCode::not_found,
      {"incomplete", "b.safetensors"}
  );
  std::string cut = shard_of("y", "12");
  cut.pop_back();
  dir.write("b.safetensors", cut);
  expect_error(
      [&] { list_tensors(dir.path()); },
      ErrorCode::invalid_input,
      {"b.safetensors", "truncated"}
  );
}

TEST(WeightSummary, WidthsFromTableDeclarationOrNothing) {
  TensorListing listing;
  // 8 rows of 256: 4 bits in groups of 64, or 8 bits of 128 in groups of 32.
  listing.add(entry("a.weight", DType::u32, {8, 32}, 1024));
  listing.add(entry("a.scales", DType::bf16, {8, 4}, 64));
  listing.add(entry("a.biases", DType::bf16, {8, 4}, 64));
  listing.add(entry("n.weight", DType::f32, {5}, 20));
  WeightSummary alone = summarize_weights(listing, nullptr, nullptr);
  EXPECT_NE(alone.parameters_note, "");
  EXPECT_EQ(alone.parameters, 5u);
  EXPECT_EQ(alone.bytes, 1172u);
  EXPECT_EQ(alone.tensors, 4u);

  QuantConfig declared;
  declared.declared = true;
  WeightSummary summary = summarize_weights(listing, &declared, nullptr);
  ASSERT_EQ(summary.formats.size(), 2u);
  EXPECT_EQ(summary.formats[0].format, "affine 4-bit group 64");
  EXPECT_EQ(summary.formats[0].tensors, 1u);
  EXPECT_EQ(summary.formats[0].bytes, 1152u);
  EXPECT_EQ(summary.formats[1].format, "f32");
  EXPECT_EQ(summary.parameters, 8u * 256 + 5);
  EXPECT_EQ(summary.parameters_note, "");

  // The family's table knows better than the declaration.
  TensorTable table = {{"a.weight", {8, 128}}};
  summary = summarize_weights(listing, &declared, &table);
  EXPECT_EQ(summary.formats[0].format, "affine 8-bit group 32");
  EXPECT_EQ(summary.parameters, 8u * 128 + 5);
}

TEST(WeightSummary, PlanesWithoutCodesAreTensors) {
  TensorListing listing;
  listing.add(entry("a.scales", DType::bf16, {2}, 4));
  listing.add(entry("b.weight", DType::u32, {2}, 8));
  listing.add(entry("c.weight", DType::bf16, {2, 2}, 8));
  listing.add(entry("c.scales", DType::bf16, {2, 1}, 4));
  WeightSummary summary = summarize_weights(listing, nullptr, nullptr);
  EXPECT_EQ(summary.parameters, 2u + 2 + 4 + 2);
  ASSERT_EQ(summary.formats.size(), 2u);
  EXPECT_EQ(summary.formats[0].format, "bf16");
  EXPECT_EQ(summary.formats[0].tensors, 3u);
}

TEST(WeightSummary, ImaginedTensorsHaveTheBytesOfTheirFormat) {
  TensorTable table = {
      {"a.weight", {8, 256}},
      {"n.weight", {256}, TensorRole::vector},
      {"head.weight", {}, TensorRole::unused, false}};
  QuantConfig declared;
  EXPECT_EQ(imagine_tensors(table, declared, DType::bf16).bytes(), 4608u);
  declared.declared = true;
  TensorListing listing = imagine_tensors(table, declared, DType::bf16);
  EXPECT_EQ(listing.bytes(), 8u * (128 + 2 * 4 * 2) + 512);
  EXPECT_EQ(listing.entry("a.weight")->shape, (std::vector<int64_t>{8, 32}));
}

}  // namespace
}  // namespace mlxcel::test
