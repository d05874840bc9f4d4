#include "mlxcel/tokenizer/models/unigram.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/unit/support/expect_error.h"

namespace mlxcel::test {
namespace {

using tokenizer::Token;
using tokenizer::Unigram;
using tokenizer::UnigramOptions;
using tokenizer::UnigramPiece;
using Ids = std::vector<int32_t>;

std::vector<UnigramPiece> pieces() {
  return {
      {"<unk>", 0},
      {"a", 0},
      {"b", 0},
      {"c", 0},
      {"d", 0},
      {"cd", 1},
      {"ab", 2},
      {"abc", 5},
      {"abcd", 10}};
}

UnigramOptions with_unk() {
  UnigramOptions options;
  options.unk_id = 0;
  return options;
}

Ids encode(const Unigram& model, std::string_view text) {
  Ids ids;
  model.encode(text, *model.make_scratch(), ids);
  return ids;
}

TEST(Unigram, TakesTheBestPathAndFusesUnknowns) {
  Unigram model(pieces(), with_unk());
  EXPECT_EQ(encode(model, "abcdacdxx"), (Ids{8, 1, 5, 0}));
  EXPECT_EQ(encode(model, "xéa"), (Ids{0, 1}));
  std::vector<Token> tokens;
  model.encode_tokens("xéab", *model.make_scratch(), tokens);
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_EQ(tokens[0].end, 3u);
  EXPECT_EQ(tokens[1].begin, 3u);
}

TEST(Unigram, AmongEqualScoresTheLongerTokenWins) {
  Unigram model({{"<unk>", 0}, {"a", -1}, {"aa", -2}}, with_unk());
  EXPECT_EQ(encode(model, "aa"), (Ids{2}));
}

TEST(Unigram, BytesForAnUnknownRunOrNone) {
  UnigramOptions options = with_unk();
  options.byte_fallback = true;
  auto some = pieces();
  some.push_back({"<0xC3>", 0});
  some.push_back({"<0xA9>", 0});
  Unigram model(some, options);
  EXPECT_EQ(encode(model, "aé"), (Ids{1, 9, 10}));
  EXPECT_EQ(encode(model, "aéx"), (Ids{1, 0}));
}

TEST(Unigram, AnUnknownRunMayBeAPieceByItself) {
  std::vector<UnigramPiece> list = {{"<unk>", 0}, {"a", 0}, {"xy", -90}};
  EXPECT_EQ(encode(Unigram(list, with_unk()), "axy"), (Ids{1, 2}));
}

TEST(Unigram, RefusesWhatItCannotDo) {
  UnigramOptions options;
  options.unk_id = 9;
  EXPECT_ERROR(Unigram(pieces(), options), "unk_id");
  options.unk_id = -1;
  EXPECT_ERROR(Unigram(pieces(), options), "unk_id");
  Unigram model(pieces(), {});
  EXPECT_EQ(encode(model, "abcd"), (Ids{8}));
  EXPECT_ERROR(encode(model, "x"), "model.unk_id");
  EXPECT_ERROR(encode(Unigram({}, {}), "x"), "model.unk_id");
}

TEST(Unigram, LongLinesTakeLinearTime) {
  // Tokens of every length, and one that is almost found everywhere.
  std::vector<UnigramPiece> list = {{"<unk>", 0}};
  for (int i = 1; i < 40; ++i) {
    list.push_back({std::string(static_cast<size_t>(i), 'a'), -1.0 * i});
  }
  list.push_back({std::string(200000, 'a') + "b", 0});
  Unigram model(list, with_unk());
  auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(encode(model, std::string(1000000, 'a')).empty());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace mlxcel::test
