#include "mlxcel/tokenizer/regex/regex.h"

#include <gtest/gtest.h>

#include <random>

#include "mlxcel/tokenizer/regex/regex_dfa.h"
#include "mlxcel/tokenizer/unicode/utf8.h"
#include "tests/unit/support/expect_error.h"

namespace mlxcel::test {
namespace {

using tokenizer::Regex;
using tokenizer::RegexScan;

std::vector<std::string> matches(const Regex& regex, std::string_view text) {
  std::vector<std::string> found;
  RegexScan scan(regex, text);
  Regex::Match match{};
  while (scan.next(match)) {
    found.emplace_back(text.substr(match.begin, match.end - match.begin));
  }
  return found;
}

struct Case {
  const char* pattern;
  const char* text;
  std::vector<std::string> matches;
};

// What Oniguruma finds, through the official library.
const Case cases[] = {
    {"a|ab|abc", "abc", {"a"}},
    {"(a|ab)(c|bcd)(d*)", "abcd", {"abcd"}},
    {"a*?b|a+", "aab aa", {"aab", "aa"}},
    {"x*", "axxbé", {"", "xx", "", ""}},
    {"a++b|a", "aab a", {"aab", "a"}},
    {"a?+ab|b", "aab ab", {"aab", "b"}},
    {"(?>a+)b|a", "aab", {"aab"}},
    {"a{2}?b|a", "aab b", {"aab", "b"}},
    {"a{,2}b", "aaab", {"aab"}},
    {"a{1,2}+", "aaaaa", {"aaaaa"}},
    {"a{3,1}ab|a", "aaab", {"a", "a", "a"}},
    {"{a}|b{x", "{a}b{x", {"{a}", "b{x"}},
    {"[a-c-e]+", "a-ec", {"a-ec"}},
    {"[]a]+", "]a[", {"]a"}},
    {"[--a]+", "-.a,b", {"-.a"}},
    {"[a-z&&b-y&&[^m]]+", "abmyz", {"b", "y"}},
    {"[^a-c&&b]+", "abc", {"a", "c"}},
    {"[^(\\s|[.,!])]+", "a(b|c. d", {"a", "b", "c", "d"}},
    {"[[:alpha:]]+|[[:^alpha:]]", "aé1", {"aé", "1"}},
    {"\\p{^L}+", "a12b", {"12"}},
    {"\\P{Lu}+", "aBc", {"a", "c"}},
    {"a(?i)b|c", "aBaCc", {"aB", "aC"}},
    {"(?i:'s|k)", "'S'ſKk", {"'S", "'ſ", "K", "k"}},
    {"(?m:.)", "\n", {"\n"}},
    {".", "a\nb", {"a", "b"}},
    {"^a|b$", "a\nab\nb", {"a", "a", "b", "b"}},
    {"\\bb|\\Bc", "ab b cbc", {"b", "c"}},
    {"(?<=a)b|(?<!a)c", "abcac", {"b", "c"}},
    {"ab(?!c)|(?=b)b", "abcab", {"b", "ab"}},
    {"\\s+(?!\\S)|\\s+", "a   b  ", {"  ", " ", "  "}},
    {"\\x41|\\x{e9}|\\u00e8", "Aéè", {"A", "é", "è"}},
    // Outside of a class \w takes these numbers for word characters.
    {"\\w+", "a²½", {"a²½"}},
    {"[\\w]+", "a²½", {"a"}},
    // Unicode 16: U+A7DA is a letter, U+1E030 too.
    {"\\p{Lu}", "\ua7da", {"\ua7da"}},
    {"\\p{Lm}", "\U0001e030", {"\U0001e030"}},
    {"[\\p{Han}]+", "a中文b", {"中文"}},
};

TEST(Regex, FindsWhatOnigurumaFinds) {
  for (const Case& c : cases) {
    EXPECT_EQ(matches(*Regex::compile(c.pattern), c.text), c.matches)
        << c.pattern;
    EXPECT_EQ(
        matches(*Regex::compile_backtracking(c.pattern), c.text), c.matches
    ) << c.pattern;
  }
}

const char* const published[] = {
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
    "|\\s+(?!\\S)|\\s+",
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    "[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*"
    "|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
    "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*"
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
};

std::string random_text(std::mt19937& random) {
  static constexpr char32_t characters[] =
      U"aabBsSſ''  \n\r\t09½²éА中あ\u0301.,!-_\u3000😀";
  std::string text;
  std::uniform_int_distribution<size_t> pick(0, std::size(characters) - 2);
  for (size_t size = random() % 40; size > 0; --size) {
    utf8::append(text, characters[pick(random)]);
  }
  return text;
}

TEST(Regex, AutomatonAndBacktrackingAgreeOnPublishedPatterns) {
  std::mt19937 random(7);
  for (const char* pattern : published) {
    auto fast = Regex::compile(pattern);
    auto slow = Regex::compile_backtracking(pattern);
    ASSERT_NE(tokenizer::compile_dfa(tokenizer::parse_regex(pattern)), nullptr)
        << pattern;
    for (int i = 0; i < 500; ++i) {
      std::string text = random_text(random);
      ASSERT_EQ(matches(*fast, text), matches(*slow, text))
          << pattern << " on " << text;
    }
  }
}

TEST(Regex, LeavesToBacktrackingWhatAnAutomatonCannotDo) {
  for (const char* pattern :
       {"^a", "a$", "(?<=a)b", "(?!ab)c", "(?>ab)", "a?+ab", "(a*)*b"}) {
    EXPECT_EQ(tokenizer::compile_dfa(tokenizer::parse_regex(pattern)), nullptr)
        << pattern;
  }
}

TEST(Regex, LiteralMatchesItself) {
  EXPECT_EQ(matches(*Regex::literal("a.b"), "a.b a-b a.b").size(), 2u);
  EXPECT_EQ(matches(*Regex::literal(""), "aé").size(), 3u);
}

TEST(Regex, RefusesByName) {
  EXPECT_ERROR(Regex::compile("(a)\\1"), "back reference");
  EXPECT_ERROR(Regex::compile("a\\Kb"), "\\K is not supported");
  EXPECT_ERROR(Regex::compile("\\p{Klingon}"), "Klingon");
  EXPECT_ERROR(Regex::compile("(?i:é)"), "ignoring the case");
  EXPECT_ERROR(Regex::compile("(?i:ss)"), "case-insensitive \"ss\"");
  EXPECT_ERROR(Regex::compile("(?x: a)"), "(?x");
  EXPECT_ERROR(Regex::compile("(*FAIL)"), "(*");
}

TEST(Regex, RefusesMalformed) {
  EXPECT_ERROR(Regex::compile("(a"), "( without )");
  EXPECT_ERROR(Regex::compile("a)"), "unmatched )");
  EXPECT_ERROR(Regex::compile("[a"), "[ without ]");
  EXPECT_ERROR(Regex::compile("[]"), "an empty class");
  EXPECT_ERROR(Regex::compile("*a"), "nothing to repeat");
  EXPECT_ERROR(Regex::compile("[b-a]"), "ends before it starts");
  EXPECT_ERROR(Regex::compile("a\\"), "\\ at the end");
  EXPECT_ERROR(Regex::compile("\xff"), "invalid UTF-8");
}

}  // namespace
}  // namespace mlxcel::test
