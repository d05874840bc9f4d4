#include "mlxcel/tokenizer/split/added_tokens.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/support/expect_error.h"
#include "tests/unit/tokenizer/support/tokenizer_file.h"

namespace mlxcel::test {
namespace {

using List = std::vector<std::string>;
using tokenizer::StringMatcher;

List found(const List& words, const std::string& text) {
  StringMatcher matcher;
  for (size_t i = 0; i < words.size(); ++i) {
    matcher.add(words[i], static_cast<int32_t>(i));
  }
  matcher.build();
  List result;
  StringMatcher::Match match{};
  for (size_t from = 0; matcher.find(text, from, match); from = match.end) {
    result.push_back(text.substr(match.begin, match.end - match.begin));
    EXPECT_EQ(result.back(), words[static_cast<size_t>(match.value)]);
  }
  return result;
}

TEST(StringMatcher, LeftmostThenLongest) {
  EXPECT_EQ(found({"a", "ab", "abcd"}, "abcxabcd"), (List{"ab", "abcd"}));
  EXPECT_EQ(found({"abcd", "bc"}, "abcx"), (List{"bc"}));
  EXPECT_EQ(found({"abcd", "b", "cx"}, "abcx"), (List{"b", "cx"}));
  EXPECT_EQ(found({"abcd", "bcx", "bc"}, "abcx"), (List{"bcx"}));
  EXPECT_EQ(found({"", "aa"}, "aaaaa"), (List{"aa", "aa"}));
  EXPECT_EQ(found({}, "a"), List{});
}

TEST(StringMatcher, AgreesWithTryingEverywhere) {
  std::mt19937 random(5);
  auto word = [&](size_t longest) {
    std::string text;
    for (size_t n = 1 + random() % longest; n > 0; --n) {
      text += static_cast<char>('a' + random() % 3);
    }
    return text;
  };
  for (int round = 0; round < 400; ++round) {
    List words;
    while (words.size() < 6) {
      std::string candidate = word(5);
      if (std::find(words.begin(), words.end(), candidate) == words.end()) {
        words.push_back(candidate);
      }
    }
    std::string text = word(40);
    List expected;
    for (size_t at = 0; at < text.size();) {
      std::string best;
      for (const std::string& w : words) {
        if (text.compare(at, w.size(), w) == 0 && w.size() > best.size()) {
          best = w;
        }
      }
      at += std::max<size_t>(best.size(), 1);
      if (!best.empty()) {
        expected.push_back(best);
      }
    }
    ASSERT_EQ(found(words, text), expected) << text;
  }
}

/// Letters, "▁", and added tokens behind them.
std::shared_ptr<const Tokenizer> with_tokens(
    const List& tokens, const std::string& normalizer = "null"
) {
  TokenizerFile file;
  List letters = {"a", "b", " ", "<", ">", "▁"};
  file.model = bpe_model(letters, {});
  file.normalizer = normalizer;
  file.added_tokens = json_list(tokens);
  return file.load();
}

List pieces(
    const Tokenizer& tokenizer,
    const std::string& text,
    EncodeOptions options = {}
) {
  List result;
  for (int32_t id : tokenizer.encode(text, options)) {
    result.push_back(tokenizer.id_to_token(id));
  }
  return result;
}

TEST(AddedTokens, TakeIdsOfTheVocabularyOrNewOnes) {
  auto tokenizer = with_tokens(
      {added_token("a", R"("id":99)"),
       added_token("<x>", R"("id":99)"),
       added_token("<y>"),
       added_token("<x>")}
  );
  EXPECT_EQ(tokenizer->token_to_id("a"), 0);
  EXPECT_EQ(tokenizer->token_to_id("<x>"), 6);
  EXPECT_EQ(tokenizer->token_to_id("<y>"), 7);
  EXPECT_EQ(tokenizer->vocab_size(), 8u);
  EXPECT_TRUE(tokenizer->is_special(0));
  EXPECT_FALSE(tokenizer->is_special(1));
  EXPECT_FALSE(tokenizer->is_special(-1));
  EXPECT_FALSE(tokenizer->is_special(1000));
}

TEST(AddedTokens, StripAndSwallowSpaces) {
  auto tokenizer = with_tokens(
      {added_token("<l>", R"("lstrip":true)"),
       added_token("<r>", R"("rstrip":true)")}
  );
  EXPECT_EQ(pieces(*tokenizer, "a  <l> a"), (List{"a", "<l>", " ", "a"}));
  EXPECT_EQ(pieces(*tokenizer, "a <r>\u3000 a"), (List{"a", " ", "<r>", "a"}));
  // What the one has swallowed the other cannot.
  EXPECT_EQ(pieces(*tokenizer, "<r>  <l>"), (List{"<r>", "<l>"}));
}

TEST(AddedTokens, SwallowedTokenIsStillGiven) {
  auto tokenizer =
      with_tokens({added_token("<r>", R"("rstrip":true)"), added_token("  ")});
  EXPECT_EQ(pieces(*tokenizer, "<r>  a"), (List{"<r>", "  ", "a"}));
}

TEST(AddedTokens, SingleWordsAreNotLookedForAgain) {
  auto tokenizer = with_tokens(
      {added_token("aa", R"("single_word":true)"),
       added_token("aab", R"("single_word":true)")}
  );
  EXPECT_EQ(pieces(*tokenizer, "aa b"), (List{"aa", " ", "b"}));
  EXPECT_EQ(pieces(*tokenizer, "baa"), (List{"b", "a", "a"}));
  EXPECT_EQ(pieces(*tokenizer, "aab<"), (List{"aab", "<"}));
  EXPECT_EQ(pieces(*tokenizer, "aaba"), (List{"a", "a", "b", "a"}));
}

TEST(AddedTokens, TwoPasses) {
  std::string prepend = R"({"type":"Prepend","prepend":"▁"})";
  auto tokenizer = with_tokens(
      {added_token("<raw>"), added_token("<n>", R"("normalized":true)")},
      prepend
  );
  // The normalized token is looked for as "▁<n>", after the raw one.
  EXPECT_EQ(pieces(*tokenizer, "<n>a"), (List{"<n>", "a"}));
  EXPECT_EQ(pieces(*tokenizer, "a<n>"), (List{"▁", "a", "<", ">"}));
  EXPECT_EQ(pieces(*tokenizer, "a<raw><n>"), (List{"▁", "a", "<raw>", "<n>"}));
}

TEST(AddedTokens, SpecialOnesCanBeText) {
  auto tokenizer =
      with_tokens({added_token("<a>"), added_token("<b>", R"("special":false)")}
      );
  EncodeOptions plain;
  plain.find = FindAdded::ordinary;
  EXPECT_EQ(pieces(*tokenizer, "<a><b>"), (List{"<a>", "<b>"}));
  EXPECT_EQ(pieces(*tokenizer, "<a><b>", plain), (List{"<", "a", ">", "<b>"}));
  plain.find = FindAdded::none;
  EXPECT_EQ(
      pieces(*tokenizer, "<a><b>", plain), (List{"<", "a", ">", "<", "b", ">"})
  );
  EXPECT_EQ(pieces(*tokenizer, "", plain), List{});
}

TEST(AddedTokens, EmptyOnesAreLeftOut) {
  auto tokenizer = with_tokens({added_token(""), added_token("<a>")});
  EXPECT_EQ(pieces(*tokenizer, "a<a>"), (List{"a", "<a>"}));
  EXPECT_EQ(tokenizer->vocab_size(), 7u);
}

}  // namespace
}  // namespace mlxcel::test
