#include "mlxcel/core/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace mlxcel {
namespace {

TEST(Numbers, CheckedArithmetic) {
  EXPECT_EQ(checked_mul(1u << 20, 1u << 20), uint64_t{1} << 40);
  EXPECT_FALSE(checked_mul(uint64_t{1} << 40, uint64_t{1} << 40));
  EXPECT_FALSE(checked_add(UINT64_MAX, 1));
  EXPECT_EQ(checked_product(std::vector<int64_t>{3, 4, 0}), 0u);
  EXPECT_EQ(checked_product({}), 1u);
  EXPECT_FALSE(checked_product(std::vector<int64_t>{3, -1}));
  EXPECT_FALSE(checked_product(std::vector<int64_t>(10000, 3)));
}

TEST(Numbers, EveryHalfSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    float value = f16_to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16_to_float(float_to_f16(value))));
    } else {
      ASSERT_EQ(float_to_f16(value), half) << bits;
    }
    float wide = bf16_to_float(half);
    if (!std::isnan(wide)) {
      ASSERT_EQ(float_to_bf16(wide), half) << bits;
    }
  }
}

TEST(Numbers, HalfRoundsToNearestEven) {
  EXPECT_EQ(f16_to_float(float_to_f16(1.0F + 0x1p-11F)), 1.0F);
  EXPECT_EQ(f16_to_float(float_to_f16(1.0F + 3 * 0x1p-11F)), 1.0F + 0x1p-9F);
  EXPECT_EQ(f16_to_float(float_to_f16(65519.0F)), 65504.0F);
  EXPECT_TRUE(std::isinf(f16_to_float(float_to_f16(65520.0F))));
  EXPECT_EQ(float_to_f16(0x1p-25F), 0);
  EXPECT_EQ(float_to_f16(0x1.8p-25F), 1);
  EXPECT_EQ(bf16_to_float(float_to_bf16(1.0F + 0x1p-8F)), 1.0F);
}

TEST(Numbers, ParsesWholeTextsOnly) {
  EXPECT_EQ(parse_int("-12"), -12);
  EXPECT_FALSE(parse_int("12x"));
  EXPECT_FALSE(parse_int(""));
  EXPECT_FALSE(parse_int("99999999999999999999"));
  EXPECT_EQ(parse_double("1.5"), 1.5);
  EXPECT_FALSE(parse_double("1.5 "));
}

}  // namespace
}  // namespace mlxcel
