#include "mlxcel/tokenizer/unicode/utf8.h"

#include <gtest/gtest.h>

namespace mlxcel::test {
namespace {

std::string lossy(const std::string& bytes) {
  std::string out;
  utf8::append_lossy(out, bytes);
  return out;
}

TEST(Utf8, AppendAndNextAreInverse) {
  for (char32_t c :
       {0x0u, 0x7fu, 0x80u, 0x7ffu, 0x800u, 0xffffu, 0x10000u, 0x10ffffu}) {
    std::string text;
    utf8::append(text, c);
    const char* p = text.data();
    EXPECT_EQ(utf8::next(p), c);
    EXPECT_EQ(p, text.data() + text.size());
    EXPECT_EQ(utf8::last_begin("a" + text), 1u);
  }
}

// The example of The Unicode Standard 3.9, table 3-8 and the like.
TEST(Utf8, LossyReplacesMaximalSubparts) {
  EXPECT_EQ(
      lossy("a\xf1\x80\x80\xe1\x80\xc2"
            "b"),
      "a\ufffd\ufffd\ufffdb"
  );
  EXPECT_EQ(lossy("\xc0\xaf"), "\ufffd\ufffd");
  EXPECT_EQ(lossy("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");
  EXPECT_EQ(lossy("\xf4\x90\x80\x80"), "\ufffd\ufffd\ufffd\ufffd");
  EXPECT_EQ(lossy("\xe2\x82"), "\ufffd");
  EXPECT_EQ(lossy("€é"), "€é");
}

TEST(Utf8, CertainPrefixKeepsBackWhatMayBeCompleted) {
  EXPECT_EQ(utf8::certain_prefix("ab"), 2u);
  EXPECT_EQ(utf8::certain_prefix("a\xf0\x9f\x98"), 1u);
  EXPECT_EQ(utf8::certain_prefix("a\xf0\x9f\x98\x80"), 5u);
  EXPECT_EQ(utf8::certain_prefix("\xe2\x82"), 0u);
  EXPECT_EQ(utf8::certain_prefix("a\xc3"), 1u);
  // No further byte makes these valid.
  EXPECT_EQ(utf8::certain_prefix("a\xc0"), 2u);
  EXPECT_EQ(utf8::certain_prefix("a\x80"), 2u);
  EXPECT_EQ(utf8::certain_prefix("a\xed\xa0"), 3u);
}

TEST(Utf8, SingleIsOneCharacter) {
  char32_t c = 0;
  EXPECT_TRUE(utf8::single("▁", c));
  EXPECT_EQ(c, U'▁');
  EXPECT_FALSE(utf8::single("", c));
  EXPECT_FALSE(utf8::single("▁a", c));
}

}  // namespace
}  // namespace mlxcel::test
