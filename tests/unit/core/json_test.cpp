#include "mlxcel/core/json.h"

#include <gtest/gtest.h>

#include "tests/unit/support/expect_error.h"

namespace mlxcel {
namespace {

Json parse(const std::string& text) {
  return Json::parse(text, "dir/config.json");
}

TEST(Json, KeepsOrderAndReadsTypes) {
  Json json = parse(R"({"b": 1, "a": {"x": [1.5, "s", true]}, "n": null})");
  auto items = json.items();
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].first, "b");
  EXPECT_EQ(items[1].first, "a");
  auto list = json.at("a").at("x").elements();
  EXPECT_EQ(list[0].as_double(), 1.5);
  EXPECT_EQ(list[1].as_string(), "s");
  EXPECT_TRUE(list[2].as_bool());
  EXPECT_FALSE(json.has("n"));
  EXPECT_EQ(json.int_or("n", 7), 7);
}

TEST(Json, WholeFloatsAndNumericStringsAreIntegers) {
  Json json = parse(R"({"a": 28.0, "b": "64", "c": 1.5, "d": 1e300})");
  EXPECT_EQ(json.at("a").as_int(), 28);
  EXPECT_EQ(json.at("b").as_int(), 64);
  EXPECT_ERROR(json.at("c").as_int(), "c: expected an integer, got 1.5");
  EXPECT_ERROR(json.at("d").as_int(), "d: expected an integer");
}

TEST(Json, ErrorsNameTheFieldAndTheFile) {
  Json json = parse(R"({"rope": {"factor": "x"}, "heads": -3})");
  EXPECT_ERROR(
      json.at("rope").at("factor").as_double(),
      "[config.json] rope.factor: expected a number, got \"x\" (in "
      "dir/config.json)"
  );
  EXPECT_ERROR(
      json.at("heads").as_int(1),
      "[config.json] heads: expected a positive integer, got -3"
  );
  EXPECT_ERROR(json.at("rope").at("kind"), "rope.kind: required, but missing");
}

TEST(Json, RefusesDuplicateKeys) {
  EXPECT_ERROR(parse(R"({"a": 1, "b": {"c": 1, "c": 2}})"), "duplicate key");
  EXPECT_NO_THROW(parse(R"({"a": {"c": 1}, "b": {"c": 1}})"));
}

TEST(Json, RefusesDeepNestingWithoutRecursion) {
  std::string deep(100000, '[');
  EXPECT_ERROR(parse(deep), "nested deeper than 128 levels");
  EXPECT_NO_THROW(parse(std::string(100, '[') + std::string(100, ']')));
}

TEST(Json, RefusesBrokenText) {
  for (const char* text :
       {"",
        "{",
        "{\"a\":}",
        "[1,]",
        "{\"a\": NaN}",
        "nul",
        "{} {}",
        "\"\xff\"",
        "[1e999]"}) {
    EXPECT_ERROR(parse(text), "dir/config.json");
  }
}

TEST(Json, RangeErrorsGiveTheRange) {
  Json json = parse(R"({"bits": 64})");
  EXPECT_ERROR(
      json.at("bits").as_int(1, 32),
      "bits: expected an integer from 1 to 32, got 64"
  );
}

}  // namespace
}  // namespace mlxcel
