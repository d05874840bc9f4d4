#include "mlxcel/tokenizer/normalize/normalizer.h"

#include <gtest/gtest.h>

#include "tests/unit/support/expect_error.h"

namespace mlxcel::test {
namespace {

std::string normalized(const std::string& json, const std::string& text) {
  return tokenizer::make_normalizer(Json::parse(json, "test"))->apply_to(text);
}

TEST(Normalizer, NormalForms) {
  std::string text = "e\u0301ﬁ가\u0323\u0307";
  EXPECT_EQ(normalized(R"({"type":"NFC"})", text), "éﬁ가\u0323\u0307");
  EXPECT_EQ(normalized(R"({"type":"NFD"})", "é가"), "e\u0301\u1100\u1161");
  EXPECT_EQ(normalized(R"({"type":"NFKC"})", text), "éfi가\u0323\u0307");
  EXPECT_EQ(normalized(R"({"type":"NFKD"})", "ﬁ½"), "fi1\u20442");
  EXPECT_EQ(normalized(R"({"type":"NFC"})", "plain"), "plain");
}

TEST(Normalizer, NormalFormsReorderMarks) {
  EXPECT_EQ(normalized(R"({"type":"NFD"})", "a\u0301\u0323"), "a\u0323\u0301");
  EXPECT_EQ(normalized(R"({"type":"NFC"})", "a\u0301\u0323"), "ạ\u0301");
  // U+0345 between blocks nothing of a lower class, a starter does.
  EXPECT_EQ(normalized(R"({"type":"NFC"})", "ab\u0301"), "ab\u0301");
}

TEST(Normalizer, YoungCharactersStay) {
  // U+32FF and U+11938 are younger than the official library's tables.
  EXPECT_EQ(normalized(R"({"type":"NFKC"})", "\u32ff"), "\u32ff");
  EXPECT_EQ(normalized(R"({"type":"NFD"})", "\U00011938"), "\U00011938");
  EXPECT_EQ(
      normalized(R"({"type":"NFC"})", "\U00011935\U00011930"),
      "\U00011935\U00011930"
  );
  // So is the combining class of U+1715.
  EXPECT_EQ(normalized(R"({"type":"NFD"})", "a\u1715\u0334"), "a\u1715\u0334");
}

TEST(Normalizer, LowercaseGoesCharacterByCharacter) {
  EXPECT_EQ(
      normalized(R"({"type":"Lowercase"})", "ΌΣΟΣ İAß"), "όσοσ i\u0307aß"
  );
}

TEST(Normalizer, PrependLeavesNothingAlone) {
  std::string json = R"({"type":"Prepend","prepend":"▁"})";
  EXPECT_EQ(normalized(json, "a"), "▁a");
  EXPECT_EQ(normalized(json, ""), "");
}

TEST(Normalizer, ReplaceByTextOrPattern) {
  EXPECT_EQ(
      normalized(
          R"({"type":"Replace","pattern":{"String":"a.b"},"content":"-"})",
          "a.b axb"
      ),
      "- axb"
  );
  EXPECT_EQ(
      normalized(
          R"({"type":"Replace","pattern":{"Regex":" {2,}"},"content":"$1"})",
          "a  b c   d"
      ),
      "a$1b c$1d"
  );
}

TEST(Normalizer, StripTakesUnicodeSpaces) {
  std::string text = "\u3000 a b\u2028";
  EXPECT_EQ(
      normalized(
          R"({"type":"Strip","strip_left":true,"strip_right":false})", text
      ),
      "a b\u2028"
  );
  EXPECT_EQ(
      normalized(
          R"({"type":"Strip","strip_left":false,"strip_right":true})", text
      ),
      "\u3000 a b"
  );
  EXPECT_EQ(
      normalized(
          R"({"type":"Strip","strip_left":true,"strip_right":true})", " \t"
      ),
      ""
  );
}

TEST(Normalizer, SequenceGoesInOrder) {
  EXPECT_EQ(
      normalized(
          R"({"type":"Sequence","normalizers":[
              {"type":"Prepend","prepend":"X"},{"type":"Lowercase"}]})",
          "A"
      ),
      "xa"
  );
}

TEST(Normalizer, Bert) {
  std::string all =
      R"({"type":"BertNormalizer","clean_text":true,)"
      R"("handle_chinese_chars":true,"strip_accents":null,"lowercase":true})";
  EXPECT_EQ(
      normalized(
          all,
          "Né\tA\x01 \xef\xbf\xbd"
          "中b"
      ),
      "ne a  中 b"
  );
  std::string cased = R"({"type":"BertNormalizer","clean_text":false,)"
                      R"("handle_chinese_chars":false,"strip_accents":null,)"
                      R"("lowercase":false})";
  EXPECT_EQ(normalized(cased, "Né\t中"), "Né\t中");
}

TEST(Normalizer, CharacterByCharacter) {
  EXPECT_EQ(normalized(R"({"type":"StripAccents"})", "e\xcc\x81é"), "eé");
  EXPECT_EQ(
      normalized(R"({"type":"Nmt"})", "a\x01\tb\xe2\x80\x8b\xe2\x96\x81"),
      "a b  "
  );
  EXPECT_EQ(normalized(R"({"type":"ByteLevel"})", " é"), "ĠÃ©");
}

TEST(Normalizer, UnknownTypeIsNamed) {
  EXPECT_ERROR(
      normalized(R"({"type":"Novel"})", ""),
      "the normalizer type \"Novel\" is not supported"
  );
}

TEST(Text, KeepsOriginsThroughEdits) {
  tokenizer::Text text("aéb", 10, true);
  EXPECT_EQ(text.origin(2).begin, 11u);
  EXPECT_EQ(text.origin(2).end, 13u);
  tokenizer::TextEditor editor(text);
  editor.insert_before("<");
  editor.keep(1);
  editor.swap(2, "e!");
  editor.insert(">");
  editor.finish();
  EXPECT_EQ(text.view(), "<ae!>b");
  std::vector<size_t> begins;
  for (size_t i = 0; i < text.view().size(); ++i) {
    begins.push_back(text.origin(i).begin);
  }
  EXPECT_EQ(begins, (std::vector<size_t>{10, 10, 11, 11, 11, 13}));
}

}  // namespace
}  // namespace mlxcel::test
