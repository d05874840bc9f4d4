#include "mlxcel/core/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace mlxcel {
namespace {

TEST(Utf8, AcceptsWellFormedText) {
  EXPECT_FALSE(find_invalid_utf8(""));
  EXPECT_FALSE(find_invalid_utf8("a\x7f\xc2\x80\xe0\xa0\x80\xed\x9f\xbf"));
  EXPECT_FALSE(find_invalid_utf8("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"));
  EXPECT_FALSE(find_invalid_utf8(std::string("a\0b", 3)));
}

TEST(Utf8, NamesTheFirstBadByte) {
  EXPECT_EQ(find_invalid_utf8("ab\xff"), 2u);
  for (const char* bad :
       {"\x80",
        "\xc0\xaf",
        "\xc1\xbf",
        "\xe0\x9f\xbf",
        "\xed\xa0\x80",
        "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xe2\x82",
        "\xc3"}) {
    EXPECT_EQ(find_invalid_utf8(bad), 0u) << bad;
  }
}

}  // namespace
}  // namespace mlxcel
