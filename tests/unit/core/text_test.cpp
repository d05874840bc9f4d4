#include "mlxcel/core/text.h"

#include <gtest/gtest.h>

namespace mlxcel {
namespace {

TEST(Text, LowerCaseOfAsciiAlone) {
  EXPECT_EQ(ascii_lower("AZaz@[09É"), "azaz@[09É");
  EXPECT_EQ(ascii_lower(""), "");
}

TEST(Text, ListsOfNamesAreCut) {
  EXPECT_EQ(list_names({}, 2), "");
  EXPECT_EQ(list_names({"a", "b"}, 2), "a, b");
  EXPECT_EQ(list_names({"a", "b", "c", "d"}, 2), "a, b and 2 more");
}

}  // namespace
}  // namespace mlxcel
