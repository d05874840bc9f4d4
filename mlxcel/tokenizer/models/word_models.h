#pragma once

#include <cstddef>
#include <string>

#include "mlxcel/tokenizer/models/remembering_model.h"
#include "mlxcel/tokenizer/models/token_automaton.h"

namespace mlxcel::tokenizer {

struct WordPieceOptions {
  std::string unk_token = "[UNK]";
  std::string continuing_subword_prefix = "##";
  size_t max_input_chars_per_word = 100;
};

/// The longest token again and again from the left (Wu et al. 2016); one
/// unknown token for a word in which that fails, or a longer one.
class WordPiece : public RememberingModel {
 public:
  WordPiece(Vocab vocab, WordPieceOptions options);

  /// Throws Error(invalid_input) if the unknown token is needed and is not in
  /// the vocabulary, or if tokens are so long that a word takes too long.
  void encode_tokens(
      std::string_view piece, Scratch& scratch, std::vector<Token>& tokens
  ) const override;

 private:
  bool cut(std::string_view word, std::vector<Token>& tokens) const;

  WordPieceOptions options_;
  TokenAutomaton first_;       // at the start of a word
  TokenAutomaton continuing_;  // tokens with the prefix, without it
};

/// Whole pieces, or one unknown token.
class WordLevel : public Model {
 public:
  WordLevel(Vocab vocab, std::string unk_token);

  std::unique_ptr<Scratch> make_scratch() const override;
  /// Throws Error(invalid_input) if the unknown token is needed and is not in
  /// the vocabulary.
  void encode(
      std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids
  ) const override;
  void encode_tokens(
      std::string_view piece, Scratch& scratch, std::vector<Token>& tokens
  ) const override;

 private:
  std::string unk_token_;
};

}  // namespace mlxcel::tokenizer
