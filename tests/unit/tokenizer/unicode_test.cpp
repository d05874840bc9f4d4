#include "mlxcel/tokenizer/unicode/unicode.h"

#include <gtest/gtest.h>

#include "mlxcel/tokenizer/unicode/code_set.h"

namespace mlxcel::test {
namespace {

using tokenizer::CodeSet;

TEST(Unicode, TableAndSetsAgree) {
  const unicode::AttributeTable& table = unicode::attributes();
  CodeSet spaces = CodeSet::with_attributes(unicode::space);
  CodeSet letters =
      CodeSet::with_categories(1u << unicode::Lu | 1u << unicode::Ll);
  for (char32_t c = 0; c <= 0x10ffff; c += 7) {
    uint32_t category = table[c] & unicode::category_mask;
    ASSERT_EQ((table[c] & unicode::space) != 0, spaces.contains(c));
    ASSERT_EQ(
        category == unicode::Lu || category == unicode::Ll, letters.contains(c)
    );
  }
}

TEST(Unicode, LowerCaseIsThatOfUnicode17) {
  EXPECT_EQ(unicode::to_lower('A'), U'a');
  EXPECT_EQ(unicode::to_lower(U'Ā'), U'ā');
  EXPECT_EQ(unicode::to_lower(U'ā'), U'ā');
  EXPECT_EQ(unicode::to_lower(U'Σ'), U'σ');
  EXPECT_EQ(unicode::to_lower(0x130), U'i');
  EXPECT_EQ(unicode::to_lower(0x16ea0), 0x16ebbu);
  EXPECT_EQ(unicode::to_lower(0x10ffff), 0x10ffffu);
}

TEST(CodeSet, JoinsRangesThatTouch) {
  CodeSet set = CodeSet::of(10, 20);
  set.add(30, 40);
  set.add(21, 29);
  set.add(5, 7);
  set.add(0, 0);
  std::vector<CodeSet::Range> expected = {{0, 0}, {5, 7}, {10, 40}};
  EXPECT_EQ(set.ranges(), expected);
}

TEST(CodeSet, ComplementAndIntersection) {
  CodeSet set = CodeSet::of(0, 9);
  set.add(20, CodeSet::max_code_point);
  std::vector<CodeSet::Range> gap = {{10, 19}};
  EXPECT_EQ(set.complement().ranges(), gap);
  EXPECT_EQ(set.complement().complement(), set);
  EXPECT_TRUE(CodeSet().complement().contains(CodeSet::max_code_point));
  EXPECT_EQ(set.intersection(CodeSet::of(5, 25)).ranges().size(), 2u);
  EXPECT_TRUE(set.intersection(set.complement()).empty());
}

}  // namespace
}  // namespace mlxcel::test
