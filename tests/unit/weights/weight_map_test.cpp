#include "mlxcel/weights/weight_map.h"

#include "mlxcel/weights/dtype.h"
#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

TEST(DType, NamesGoBothWays) {
  for (int i = 0; i <= static_cast<int>(DType::c64); ++i) {
    auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(dtype_size(DType::f64), 8);
  EXPECT_EQ(dtype_size(DType::bf16), 2);
  EXPECT_EQ(dtype_size(DType::f8_e8m0), 1);
  EXPECT_EQ(dtype_size(DType::boolean), 1);
  EXPECT_EQ(parse_dtype("BF16"), DType::bf16);
  for (const char* name : {"", "bf16", "BF16 ", "F4", "F8_E4M3FN"}) {
    EXPECT_FALSE(parse_dtype(name)) << name;
  }
  EXPECT_TRUE(is_weight_float(DType::f16));
  EXPECT_FALSE(is_weight_float(DType::f64));
  EXPECT_FALSE(is_weight_float(DType::u32));
}

TEST(WeightMap, FindInsertEraseRename) {
  WeightMap weights;
  weights.origin = "DIR";
  Weight one = make_weight<uint8_t>(DType::u8, {1}, {1});
  Weight two = make_weight<uint8_t>(DType::u8, {2}, {1, 2});
  weights.insert("b", one);
  weights.insert("a", two);
  EXPECT_EQ(weights.begin()->first, "a");
  weights.insert("b", two);
  EXPECT_EQ(weights.size(), 2u);
  EXPECT_EQ(weights.at("b").shape, std::vector<int64_t>{2});
  weights.rename("b", "c");
  EXPECT_EQ(weights.find("b"), nullptr);
  EXPECT_EQ(weights.at("c").source, two.source);
  weights.rename("c", "c");
  EXPECT_TRUE(weights.contains("c"));
  weights.erase("c");
  weights.erase("c");
  EXPECT_EQ(weights.size(), 1u);
  expect_error(
      [&] { weights.at("model.x"); }, ErrorCode::not_found, {"model.x", "DIR"}
  );
  expect_error(
      [&] { weights.rename("x", "y"); }, ErrorCode::not_found, {"x", "DIR"}
  );
  expect_error(
      [&] { weights.rename("x", "x"); }, ErrorCode::not_found, {"x", "DIR"}
  );
}

// Published files do not pad their headers, so a payload starts anywhere.
TEST(Weight, FloatsAtAnyAlignment) {
  std::vector<float> values = {1.0f, -2.5f, 0.0f, 65504.0f};
  std::vector<uint16_t> halves = {0x3c00, 0xc100, 0x0000, 0x7bff};
  std::vector<uint16_t> brains = {0x3f80, 0xc020, 0x0000, 0x4780};
  for (size_t offset : {0, 1, 2, 3, 5}) {
    auto weight = [&](DType dtype, std::string bytes) {
      return to_float(weight_at_offset(dtype, {2, 2}, bytes, offset));
    };
    EXPECT_EQ(weight(DType::f32, bytes_of(values)), values);
    EXPECT_EQ(weight(DType::f16, bytes_of(halves)), values);
    std::vector<float> rounded = values;
    rounded[3] = 65536.0f;
    EXPECT_EQ(weight(DType::bf16, bytes_of(brains)), rounded);
  }
}

TEST(Weight, EmptyAndScalar) {
  EXPECT_TRUE(to_float(make_weight<float>(DType::f32, {0, 3}, {})).empty());
  EXPECT_EQ(
      to_float(make_weight<float>(DType::f32, {}, {2.0f})),
      std::vector<float>{2.0f}
  );
}

TEST(Weight, WhatIsNoFloatOrDoesNotFitIsRefused) {
  expect_error(
      [] { to_float(make_weight<uint32_t>(DType::u32, {1}, {1})); },
      ErrorCode::unsupported,
      {"[1] U32", "memory"}
  );
  expect_error(
      [] { to_float(make_weight<float>(DType::f32, {2}, {1.0f})); },
      ErrorCode::internal,
      {"[2] F32", "4 bytes"}
  );
  expect_error(
      [] {
        make_weight<float>(DType::f32, {int64_t{1} << 40, int64_t{1} << 40}, {})
            .elements();
      },
      ErrorCode::invalid_input,
      {"1099511627776"}
  );
}

TEST(BufferSource, KeepsItsBytesAndName) {
  auto source = buffer_source({std::byte{7}}, "made");
  EXPECT_EQ(source->bytes().size(), 1u);
  EXPECT_EQ(source->origin(), "made");
  EXPECT_FALSE(source->faulted());
}

}  // namespace
}  // namespace mlxcel::test
