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

TEST(Text, FindsWhatIsThereTwice) {
  auto find = [](std::vector<std::string_view> texts) {
    return find_repeated(texts);
  };
  EXPECT_EQ(find({}), std::nullopt);
  EXPECT_EQ(find({"a", "b", "", "ab"}), std::nullopt);
  EXPECT_EQ(find({"a", "b", "c", "b"}), "b");
  EXPECT_EQ(find({"", "x", ""}), "");
}

}  // namespace
}  // namespace mlxcel
