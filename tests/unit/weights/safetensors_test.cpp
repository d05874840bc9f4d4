#include "mlxcel/weights/safetensors.h"

#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

std::vector<TensorEntry> parse(const std::string& file) {
  return read_safetensors_header(
      std::as_bytes(std::span(file.data(), file.size())), "f.safetensors"
  );
}

TEST(Safetensors, EntriesHaveAbsoluteOffsetsInPayloadOrder) {
  // The header's own order is free.
  std::string header =
      R"({"__metadata__":{"format":"pt","k":"v"},)"
      R"("b":{"shape":[3],"data_offsets":[16,19],"dtype":"U8"},)"
      R"( "a" : {"dtype":"F32", "shape":[2, 2] ,"data_offsets":[0,16]}})";
  auto entries = parse(raw_file(header, std::string(19, 'x')));
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[0].dtype, DType::f32);
  EXPECT_EQ(entries[0].shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(entries[0].begin, 8 + header.size());
  EXPECT_EQ(entries[0].end, 8 + header.size() + 16);
  EXPECT_EQ(entries[1].name, "b");
  EXPECT_EQ(entries[1].end, 8 + header.size() + 19);
}

TEST(Safetensors, WhatTheFormatAllowsIsAccepted) {
  EXPECT_TRUE(parse(raw_file("{}", "")).empty());
  EXPECT_TRUE(parse(raw_file("{ }  \n", "")).empty());
  EXPECT_TRUE(parse(raw_file(R"({"__metadata__":{}})", "")).empty());
  // MLX writes this where it was given no metadata.
  EXPECT_TRUE(parse(raw_file(R"({"__metadata__":null})", "")).empty());
  auto entries = parse(safetensors_file(
      {{"scalar", "F16", {}, "xx"},
       {"empty", "I64", {0, 4}, ""},
       {"last", "BOOL", {1}, "x"},
       {"also empty", "U8", {7, 0, 2}, ""}},
      11
  ));
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_TRUE(entries[0].shape.empty());
}

TEST(Safetensors, NamesAreDecoded) {
  auto entries = parse(raw_file(
      R"({"a\"\\\/\u00e9\ud83d\ude00é":)"
      R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
      "x"
  ));
  EXPECT_EQ(entries.at(0).name, "a\"\\/é😀é");
}

TEST(Safetensors, EveryDtypeOfTheFormatIsRead) {
  for (int i = 0; i <= static_cast<int>(DType::c64); ++i) {
    auto dtype = static_cast<DType>(i);
    std::string name(dtype_name(dtype));
    std::string bytes(static_cast<size_t>(dtype_size(dtype)), 'x');
    auto entries = parse(safetensors_file({{"w", name, {1}, bytes}}));
    EXPECT_EQ(entries.at(0).dtype, dtype) << name;
  }
}

TEST(Safetensors, TensorsAreMappedNotCopied) {
  TempDir dir;
  std::string path = dir.write(
      "m.safetensors",
      safetensors_file({{"a", "U8", {2}, "ab"}, {"b", "U8", {3}, "cde"}})
  );
  WeightMap weights;
  load_safetensors(path, weights);
  auto a = weights.at("a").bytes();
  auto b = weights.at("b").bytes();
  EXPECT_EQ(a.data() + 2, b.data());
  EXPECT_EQ(static_cast<char>(b[2]), 'e');
  EXPECT_EQ(weights.at("a").source->origin(), path);
  EXPECT_EQ(weights.at("a").describe(), "[2] U8");
  Weight kept = weights.at("b");
  weights = WeightMap();
  EXPECT_EQ(static_cast<char>(kept.bytes()[0]), 'c');
}

TEST(Safetensors, EveryFloatTypeIsRead) {
  TempDir dir;
  for (const char* dtype : {"F64", "F8_E5M2", "F8_E4M3"}) {
    size_t size = std::string(dtype) == "F64" ? 8 : 1;
    std::string path = dir.write(
        "m.safetensors",
        safetensors_file({{"w", dtype, {1}, std::string(size, 'x')}})
    );
    WeightMap weights;
    load_safetensors(path, weights);
    EXPECT_EQ(weights.at("w").describe(), "[1] " + std::string(dtype));
  }
}

TEST(Safetensors, MissingFileIsNamed) {
  WeightMap weights;
  expect_error(
      [&] { load_safetensors("/nowhere/m.safetensors", weights); },
      ErrorCode::not_found,
      {"/nowhere/m.safetensors"}
  );
}

}  // namespace
}  // namespace mlxcel::test
