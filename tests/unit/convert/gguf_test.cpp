#include "mlxcel/weights/convert/gguf/gguf.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/convert/gguf_builder.h"
#include "tests/unit/support/expect_error.h"
#include "tests/unit/support/temporary_directory.h"

namespace mlxcel::convert {

namespace {

class GgufTest : public ::testing::Test {
 protected:
  GgufFile open(GgufBuilder& builder) {
    return GgufFile::open(directory_.write("m.gguf", builder.build()));
  }

  TemporaryDirectory directory_;
};

}  // namespace

TEST_F(GgufTest, ReadsEveryValueType) {
  GgufBuilder builder;
  builder.put("u8", GgufType::uint8, uint8_t{200});
  builder.put("i8", GgufType::int8, int8_t{-5});
  builder.put("u16", GgufType::uint16, uint16_t{60000});
  builder.put("i16", GgufType::int16, int16_t{-300});
  builder.put("u32", uint32_t{4000000000});
  builder.put("i32", GgufType::int32, int32_t{-70000});
  builder.put("u64", GgufType::uint64, uint64_t{1} << 40);
  builder.put("i64", GgufType::int64, int64_t{-1} << 40);
  builder.put("f32", 0.25f);
  builder.put("f64", GgufType::float64, 1e300);
  builder.put("yes", true);
  builder.put("no", false);
  builder.put("text", "na\u00efve");
  builder.put("texts", std::vector<std::string>{"a", "", "bc"});
  builder.put_array<int32_t>("ints", GgufType::int32, {3, -4});
  builder.put_array<float>("floats", GgufType::float32, {0.5f, -1.5f});
  for (uint32_t version : {2u, 3u}) {
    builder.version = version;
    GgufFile gguf = open(builder);
    EXPECT_EQ(gguf.version(), version);
    EXPECT_EQ(gguf.need_int("u8", 0, 255), 200);
    EXPECT_EQ(gguf.need_int("i8", -9, 9), -5);
    EXPECT_EQ(gguf.need_int("u16", 0, 65535), 60000);
    EXPECT_EQ(gguf.need_int("i16", -999, 0), -300);
    EXPECT_EQ(gguf.need_int("u32", 0, INT64_MAX), 4000000000);
    EXPECT_EQ(gguf.need_int("i32", INT64_MIN, 0), -70000);
    EXPECT_EQ(gguf.need_int("u64", 0, INT64_MAX), int64_t{1} << 40);
    EXPECT_EQ(gguf.need_int("i64", INT64_MIN, 0), -(int64_t{1} << 40));
    EXPECT_EQ(gguf.need_number("f32"), 0.25);
    EXPECT_EQ(gguf.need_number("f64"), 1e300);
    EXPECT_EQ(gguf.need_number("u8"), 200);
    EXPECT_EQ(gguf.find_bool("yes"), true);
    EXPECT_EQ(gguf.find_bool("no"), false);
    EXPECT_EQ(gguf.need_string("text"), "na\u00efve");
    ASSERT_EQ(gguf.strings("texts").size(), 3u);
    EXPECT_EQ(gguf.strings("texts")[2], "bc");
    EXPECT_EQ(gguf.ints("ints"), (std::vector<int32_t>{3, -4}));
    EXPECT_EQ(gguf.floats("floats"), (std::vector<float>{0.5f, -1.5f}));
    EXPECT_EQ(gguf.find_int("absent", 0, 1), std::nullopt);
    EXPECT_TRUE(gguf.strings("absent").empty());
  }
}

TEST_F(GgufTest, WrongTypeOrRangeNamesTheKey) {
  GgufBuilder builder;
  builder.put("count", uint32_t{7});
  builder.put("text", "x");
  builder.put("huge", GgufType::uint64, UINT64_MAX);
  builder.put("nan", std::nanf(""));
  builder.put_array<float>("floats", GgufType::float32, {1});
  GgufFile gguf = open(builder);
  EXPECT_ERROR(gguf.need_int("text", 0, 9), "text: expected an integer");
  EXPECT_ERROR(gguf.need_int("count", 8, 9), "count: expected 8 to 9, got 7");
  EXPECT_ERROR(gguf.need_int("huge", 0, 1 << 20), "huge: expected");
  EXPECT_ERROR(gguf.need_int("absent", 0, 9), "absent: missing");
  EXPECT_ERROR(gguf.need_number("nan"), "nan: ");
  EXPECT_ERROR(gguf.need_string("count"), "count: expected a string");
  EXPECT_ERROR(gguf.find_bool("count"), "count: expected a boolean");
  EXPECT_ERROR(gguf.ints("floats"), "floats: expected an array of int32");
  EXPECT_ERROR(gguf.strings("text"), "text: expected an array of");
  EXPECT_ERROR(gguf.strings("text"), "m.gguf");
}

TEST_F(GgufTest, PlacesTensorsByTheFilesAlignment) {
  for (uint64_t alignment : {8u, 32u, 256u}) {
    GgufBuilder builder;
    builder.alignment = alignment;
    builder.put("general.alignment", static_cast<uint32_t>(alignment));
    builder.tensor("first", GgmlType::f32, {3}, std::string(12, 'x'));
    builder.tensor("second", GgmlType::q8_0, {2, 32}, std::string(68, 'y'));
    GgufFile gguf = open(builder);
    const GgufTensor* second = gguf.find_tensor("second");
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(second->shape, (std::vector<int64_t>{2, 32}));
    EXPECT_EQ(second->rows(), 2);
    EXPECT_EQ(second->columns(), 32);
    EXPECT_EQ(second->bytes, 68u);
    EXPECT_EQ(second->offset % alignment, 0u);
    EXPECT_EQ(std::to_integer<char>(gguf.data(*second)[0]), 'y');
    EXPECT_EQ(std::to_integer<char>(gguf.data(*second)[67]), 'y');
    EXPECT_EQ(gguf.find_tensor("third"), nullptr);
  }
}

TEST_F(GgufTest, RefusesWhatItDoesNotRead) {
  GgufBuilder nested;
  nested.put_array<uint8_t>("matrix", GgufType::array, {0, 0, 0, 0});
  EXPECT_ERROR(open(nested), "\"matrix\": an array of arrays");

  GgufBuilder twice;
  twice.put("key", uint32_t{1});
  twice.put("key", uint32_t{2});
  EXPECT_ERROR(open(twice), "\"key\" occurs twice");

  GgufBuilder tensors;
  tensors.tensor("t", GgmlType::f32, {1}, std::string(4, 0));
  tensors.tensor("t", GgmlType::f32, {1}, std::string(4, 0));
  EXPECT_ERROR(open(tensors), "\"t\" occurs twice");

  GgufBuilder foreign;
  foreign.tensor("blk.0.x", static_cast<GgmlType>(10), {32}, "");
  EXPECT_ERROR(
      open(foreign), "tensor \"blk.0.x\" type: 10 (Q2_K) is not supported"
  );

  GgufBuilder ragged;
  ragged.tensor("r", GgmlType::q4_0, {33}, std::string(36, 0));
  EXPECT_ERROR(
      open(ragged), "rows of 33 elements, Q4_0 needs a multiple of 32"
  );

  GgufBuilder alignment;
  alignment.put("general.alignment", uint32_t{24});
  EXPECT_ERROR(open(alignment), "24 is no power of two");

  for (uint32_t version : {0u, 1u, 4u, 0x03000000u}) {
    GgufBuilder builder;
    builder.version = version;
    EXPECT_ERROR(open(builder), "[gguf] version: ");
  }
  EXPECT_ERROR(
      GgufFile::open(directory_.write("x", "PK\3\4 no GGUF")),
      "[gguf] magic: this is no GGUF file"
  );
  EXPECT_ERROR(GgufFile::open(directory_ / "absent"), "absent");
  EXPECT_ERROR(GgufFile::open(directory_.path()), "not a regular file");
}

TEST_F(GgufTest, RefusesOverlappingTensors) {
  GgufBuilder builder;
  builder.tensor("a", GgmlType::f32, {16}, std::string(64, 0));
  builder.tensor("b", GgmlType::f32, {16}, std::string(64, 0));
  std::string bytes = builder.build();
  for (const GgufBuilder::Field& field : builder.fields()) {
    if (field.name == "tensor b offset") {
      bytes[field.offset] = 32;
    }
  }
  EXPECT_ERROR(
      GgufFile::open(directory_.write("m.gguf", bytes)),
      "tensor \"b\" offset: overlaps tensor \"a\""
  );
}

}  // namespace mlxcel::convert
