#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mlxcel/tokenizer/models/remembering_model.h"
#include "mlxcel/tokenizer/models/token_automaton.h"

namespace mlxcel::tokenizer {

struct UnigramPiece {
  std::string text;
  double score;  // logarithm of a probability
};

struct UnigramOptions {
  std::optional<int32_t> unk_id;
  bool byte_fallback = false;
};

/// The most probable segmentation (Kudo 2018) by the algorithm of Viterbi, in
/// time linear in the text.
class Unigram : public RememberingModel {
 public:
  /// A piece's id is its place. Throws Error(invalid_input) for an unk_id
  /// that is none, or too many pieces.
  Unigram(const std::vector<UnigramPiece>& pieces, UnigramOptions options);

  std::unique_ptr<Scratch> make_scratch() const override;
  /// Throws Error(invalid_input) for an unknown character if there is no
  /// unk_id.
  void encode_tokens(
      std::string_view piece, Scratch& scratch, std::vector<Token>& tokens
  ) const override;
  bool spells_by_text(int32_t id) const override {
    return id == options_.unk_id;
  }

 private:
  struct Work;
  struct Step;
  class Emitter;

  static Vocab make_vocab(const std::vector<UnigramPiece>& pieces);
  void find_path(std::string_view text, Work& work, Emitter& emitter) const;
  void extend(
      uint32_t output,
      size_t end,
      size_t size,
      size_t origin,
      std::vector<Step>& steps
  ) const;
  int32_t unk_id() const;

  UnigramOptions options_;
  double unk_score_ = 0;
  TokenAutomaton automaton_;
  std::array<int32_t, 256> byte_tokens_;
};

}  // namespace mlxcel::tokenizer
