#include "mlxcel/tokenizer/models/word_models.h"

#include <gtest/gtest.h>

#include "tests/unit/support/expect_error.h"

namespace mlxcel::test {
namespace {

using tokenizer::Model;
using tokenizer::Token;
using tokenizer::Vocab;
using tokenizer::WordLevel;
using tokenizer::WordPiece;
using Ids = std::vector<int32_t>;

Vocab vocab(const std::vector<std::string>& tokens) {
  Vocab result;
  for (size_t i = 0; i < tokens.size(); ++i) {
    result.add(tokens[i], static_cast<int32_t>(i));
  }
  result.build();
  return result;
}

Ids encode(const Model& model, std::string_view piece) {
  Ids ids;
  model.encode(piece, *model.make_scratch(), ids);
  return ids;
}

WordPiece word_piece(size_t limit = 100) {
  tokenizer::WordPieceOptions options;
  options.max_input_chars_per_word = limit;
  return {
      vocab({"[UNK]", "un", "##aff", "##able", "##a", "unaf", "é", "##é"}),
      options};
}

TEST(WordPiece, TakesTheLongestTokenEachTime) {
  WordPiece model = word_piece();
  EXPECT_EQ(encode(model, "unaffable"), (Ids{0}));  // unaf, and no ##f
  EXPECT_EQ(encode(model, "unaa"), (Ids{1, 4, 4}));
  EXPECT_EQ(encode(model, "ééa"), (Ids{6, 7, 4}));
  std::vector<Token> tokens;
  model.encode_tokens("ééa", *model.make_scratch(), tokens);
  ASSERT_EQ(tokens.size(), 3u);
  EXPECT_EQ(tokens[1].begin, 2u);
  EXPECT_EQ(tokens[1].end, 4u);
}

TEST(WordPiece, LimitCountsCharacters) {
  EXPECT_EQ(encode(word_piece(3), "ééa"), (Ids{6, 7, 4}));
  EXPECT_EQ(encode(word_piece(2), "ééa"), (Ids{0}));
}

TEST(WordPiece, MissingUnknownToken) {
  WordPiece model(vocab({"a"}), {});
  EXPECT_EQ(encode(model, "a"), (Ids{0}));
  EXPECT_ERROR(encode(model, "b"), "model.unk_token");
}

TEST(WordPiece, EffortIsLimited) {
  tokenizer::WordPieceOptions options;
  options.max_input_chars_per_word = size_t{1} << 40;
  WordPiece model(
      vocab({"[UNK]", "a", "##a", "##" + std::string(100000, 'a') + "b"}),
      options
  );
  EXPECT_ERROR(encode(model, std::string(100000, 'a')), "takes too long");
}

TEST(WordLevel, WholePieces) {
  WordLevel model(vocab({"<unk>", "cat"}), "<unk>");
  EXPECT_EQ(encode(model, "cat"), (Ids{1}));
  EXPECT_EQ(encode(model, "cats"), (Ids{0}));
  EXPECT_ERROR(
      encode(WordLevel(vocab({"cat"}), "<unk>"), "x"), "model.unk_token"
  );
}

}  // namespace
}  // namespace mlxcel::test
