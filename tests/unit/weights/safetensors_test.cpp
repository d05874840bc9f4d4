#include "mlxcel/weights/safetensors.h"

#include <filesystem>

#include "mlxcel/core/file.h"
#include "mlxcel/weights/safetensors_writer.h"
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

TEST(Safetensors, DtypesThatNoBackendHasAreRefusedAtLoad) {
  TempDir dir;
  for (const char* dtype : {"F64", "F8_E5M2"}) {
    size_t size = std::string(dtype) == "F64" ? 8 : 1;
    std::string path = dir.write(
        "m.safetensors",
        safetensors_file({{"w", dtype, {1}, std::string(size, 'x')}})
    );
    WeightMap weights;
    expect_error(
        [&] { load_safetensors(path, weights); },
        ErrorCode::unsupported,
        {path, "\"w\"", dtype}
    );
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

std::string slurp(const std::string& path) {
  return read_file(path, 1 << 20);
}

TEST(SafetensorsWriter, WritesWhatTheReaderAccepts) {
  TempDir dir;
  SafetensorsWriter writer(
      dir.path(),
      {{"a\"é", "F32", {2}, 8},
       {"empty", "U8", {0}, 0},
       {"b", "U8", {3}, 3},
       {"last", "U8", {0, 2}, 0}}
  );
  writer.write("01234567", 5);
  writer.write("567", 3);
  writer.write("xyz", 3);
  writer.finish();
  EXPECT_EQ(writer.files(), std::vector<std::string>{"model.safetensors"});
  EXPECT_EQ(writer.total_bytes(), 11u);
  std::string file = slurp(dir.at("model.safetensors"));
  auto entries = parse(file);
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].name, "a\"é");
  EXPECT_EQ(file.substr(entries[0].begin), "01234567xyz");
  EXPECT_NE(file.find(R"({"__metadata__":{"format":"mlx"},"a)"), file.npos);
}

TEST(SafetensorsWriter, StartsAnotherFileAtTheLimit) {
  TempDir dir;
  SafetensorsWriter writer(
      dir.path(),
      {{"a", "U8", {4}, 4}, {"b", "U8", {4}, 4}, {"c", "U8", {9}, 9}},
      8
  );
  writer.write("aaaa", 4);
  writer.write("bbbb", 4);
  writer.write("ccccccccc", 9);
  EXPECT_FALSE(file_exists(dir.at("model-00001-of-00002.safetensors")));
  writer.finish();
  EXPECT_EQ(
      parse(slurp(dir.at("model-00001-of-00002.safetensors"))).size(), 2u
  );
  EXPECT_EQ(
      parse(slurp(dir.at("model-00002-of-00002.safetensors"))).size(), 1u
  );
  std::string index = slurp(dir.at("model.safetensors.index.json"));
  EXPECT_NE(index.find("\"total_size\": 17"), index.npos);
  EXPECT_NE(
      index.find("\"c\": \"model-00002-of-00002.safetensors\""), index.npos
  );
}

TEST(SafetensorsWriter, LeavesNothingWithoutFinish) {
  TempDir dir;
  {
    SafetensorsWriter writer(
        dir.path(), {{"a", "U8", {4}, 4}, {"b", "U8", {4}, 4}}, 4
    );
    writer.write("aaaa", 4);
    writer.write("bb", 2);
    expect_error(
        [&] { writer.write("bbb", 3); }, ErrorCode::internal, {"more bytes"}
    );
    expect_error(
        [&] { writer.finish(); }, ErrorCode::internal, {"fewer bytes"}
    );
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(SafetensorsWriter, RefusesANameThatIsNotUtf8) {
  TempDir dir;
  SafetensorsWriter writer(dir.path(), {{"a\xff", "U8", {1}, 1}});
  expect_error(
      [&] { writer.write("x", 1); }, ErrorCode::invalid_input, {"UTF-8"}
  );
}

}  // namespace
}  // namespace mlxcel::test
