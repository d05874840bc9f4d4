#include "mlxcel/tokenizer/split/pre_tokenizer.h"

#include <gtest/gtest.h>

#include "tests/unit/support/expect_error.h"
#include "tests/unit/tokenizer/support/tokenizer_file.h"

namespace mlxcel::test {
namespace {

using List = std::vector<std::string>;

List pieces(
    const std::string& json, const std::string& input, size_t offset = 0
) {
  tokenizer::PreTokenizer steps(Json::parse(json, "test"), true);
  tokenizer::Text text(input, offset, steps.needs_origins());
  PieceList list;
  steps.run({&text, 0, input.size()}, list);
  return list.pieces;
}

std::string split(
    const std::string& pattern, const std::string& behavior, bool invert = false
) {
  return R"({"type":"Split","pattern":{"Regex":)" + quoted(pattern) +
         "},\"behavior\":\"" + behavior +
         "\",\"invert\":" + (invert ? "true" : "false") + "}";
}

TEST(PreTokenizer, SplitBehaviors) {
  std::string text = "the-final--countdown";
  EXPECT_EQ(
      pieces(split("-", "Removed"), text), (List{"the", "final", "countdown"})
  );
  EXPECT_EQ(
      pieces(split("-", "Isolated"), text),
      (List{"the", "-", "final", "-", "-", "countdown"})
  );
  EXPECT_EQ(
      pieces(split("-", "MergedWithPrevious"), text),
      (List{"the-", "final-", "-", "countdown"})
  );
  EXPECT_EQ(
      pieces(split("-", "MergedWithNext"), text),
      (List{"the", "-final", "-", "-countdown"})
  );
  EXPECT_EQ(
      pieces(split("-", "Contiguous"), text),
      (List{"the", "-", "final", "--", "countdown"})
  );
  EXPECT_EQ(pieces(split("-", "MergedWithNext"), "a-"), (List{"a", "-"}));
  EXPECT_EQ(pieces(split("-", "MergedWithPrevious"), "-a"), (List{"-", "a"}));
}

TEST(PreTokenizer, SplitInverted) {
  EXPECT_EQ(
      pieces(split("\\p{L}+", "Removed", true), "ab 1 cd"), (List{"ab", "cd"})
  );
}

TEST(PreTokenizer, ByteLevelGivesBytesOnlyAtTheEnd) {
  std::string byte_level = R"({"type":"ByteLevel","add_prefix_space":false,
                               "use_regex":true})";
  tokenizer::PreTokenizer last(Json::parse(byte_level, "test"), true);
  EXPECT_TRUE(last.gives_bytes());
  EXPECT_EQ(
      pieces(byte_level, "I'm a é  x"), (List{"I", "'m", " a", " é", " ", " x"})
  );
  std::string first = R"({"type":"Sequence","pretokenizers":[)" + byte_level +
                      R"(,{"type":"Digits","individual_digits":true}]})";
  EXPECT_FALSE(
      tokenizer::PreTokenizer(Json::parse(first, "t"), true).gives_bytes()
  );
  EXPECT_EQ(pieces(first, " é1"), (List{"ĠÃ©", "1"}));
}

TEST(PreTokenizer, ByteLevelPrefixSpace) {
  std::string json = R"({"type":"ByteLevel","add_prefix_space":true})";
  EXPECT_EQ(pieces(json, "a b"), (List{" a", " b"}));
  EXPECT_EQ(pieces(json, " a"), (List{" a"}));
  EXPECT_EQ(pieces(json, "\na"), (List{" ", "\n", "a"}));
}

// Falcon's: punctuation and digits on the byte-level alphabet, then threes.
TEST(PreTokenizer, SequenceRunsStepByStep) {
  std::string json = R"({"type":"Sequence","pretokenizers":[
      {"type":"Punctuation","behavior":"Contiguous"},
      {"type":"ByteLevel","add_prefix_space":false,"use_regex":true},
      {"type":"Digits","individual_digits":false},)" +
                     split("[0-9][0-9][0-9]", "Isolated") + "]}";
  EXPECT_EQ(
      pieces(json, "a!! 12345b"), (List{"a", "!!", "Ġ", "123", "45", "b"})
  );
}

TEST(PreTokenizer, DigitsAreNumbersOfAnyKind) {
  EXPECT_EQ(
      pieces(R"({"type":"Digits","individual_digits":true})", "a1½Ⅳb"),
      (List{"a", "1", "½", "Ⅳ", "b"})
  );
  EXPECT_EQ(
      pieces(R"({"type":"Digits","individual_digits":false})", "a1½Ⅳb"),
      (List{"a", "1½Ⅳ", "b"})
  );
}

TEST(PreTokenizer, PunctuationAndWhitespace) {
  EXPECT_EQ(
      pieces(R"({"type":"Punctuation"})", "a,$b「"),
      (List{"a", ",", "$", "b", "「"})
  );
  EXPECT_EQ(
      pieces(R"({"type":"WhitespaceSplit"})", " a\u3000b,c "),
      (List{"a", "b,c"})
  );
  EXPECT_EQ(
      pieces(R"({"type":"Whitespace"})", " ab1,.c ½"),
      (List{"ab1", ",.", "c", "½"})
  );
}

TEST(PreTokenizer, MetaspaceSchemes) {
  auto json = [](const std::string& rest) {
    return R"({"type":"Metaspace","replacement":"▁",)" + rest + "}";
  };
  std::string always = json(R"("prepend_scheme":"always")");
  EXPECT_EQ(pieces(always, "a  b"), (List{"▁a", "▁", "▁b"}));
  EXPECT_EQ(pieces(always, " a"), (List{"▁a"}));
  std::string first = json(R"("prepend_scheme":"first")");
  EXPECT_EQ(pieces(first, "a b"), (List{"▁a", "▁b"}));
  EXPECT_EQ(pieces(first, "a b", 3), (List{"a", "▁b"}));
  EXPECT_EQ(
      pieces(json(R"("prepend_scheme":"never")"), "a b"), (List{"a", "▁b"})
  );
  EXPECT_EQ(
      pieces(json(R"("prepend_scheme":"first","split":false)"), "a b"),
      (List{"▁a▁b"})
  );
  EXPECT_ERROR(
      pieces(json(R"("prepend_scheme":"first","add_prefix_space":false)"), "a"),
      "contradicts prepend_scheme"
  );
}

TEST(PreTokenizer, OtherKinds) {
  EXPECT_EQ(
      pieces(R"({"type":"BertPreTokenizer"})", "Hi, you"),
      (List{"Hi", ",", "you"})
  );
  EXPECT_EQ(
      pieces(R"({"type":"CharDelimiterSplit","delimiter":"é"})", "aéébé"),
      (List{"a", "b"})
  );
  EXPECT_EQ(
      pieces(R"({"type":"FixedLength","length":2})", "aébcd"),
      (List{"aé", "bc", "d"})
  );
  // What comes before the first script is lost.
  EXPECT_EQ(
      pieces(R"({"type":"UnicodeScripts"})", " abc どこ漢я"),
      (List{"abc ", "どこ漢", "я"})
  );
  EXPECT_EQ(pieces(R"({"type":"UnicodeScripts"})", "  "), (List{}));
}

TEST(PreTokenizer, FieldsAreChecked) {
  EXPECT_ERROR(
      pieces(R"({"type":"CharDelimiterSplit","delimiter":"ab"})", "a"),
      "delimiter"
  );
  EXPECT_ERROR(pieces(R"({"type":"FixedLength","length":0})", "a"), "length");
}

TEST(PreTokenizer, UnknownTypeIsNamed) {
  EXPECT_ERROR(
      pieces(R"({"type":"Novel"})", ""),
      "the pre-tokenizer type \"Novel\" is not supported"
  );
  EXPECT_ERROR(
      pieces(split("(", "Isolated"), ""), "[test] pattern.Regex: [regex]"
  );
  EXPECT_ERROR(pieces(split("a", "Whole"), ""), "expected a split behavior");
}

}  // namespace
}  // namespace mlxcel::test
