#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "mlxcel/tokenizer/models/remembering_model.h"
#include "mlxcel/tokenizer/models/token_automaton.h"

namespace mlxcel::tokenizer {

/// The lines of a tokenizer.jsonl file.
struct PlamoPieces {
  struct Piece {
    std::string text;
    double score;
    bool is_byte;
  };
  std::vector<Piece> pieces;  // by id
};

/// PLaMo's unigram model (tokenization_plamo.py, AhoCorasick): the cheapest
/// pieces in whole numbers, found from the end of a text; of equal ways the
/// one that begins with the longest piece. Unknown characters become bytes.
class PlamoUnigram : public RememberingModel {
 public:
  /// All 256 byte tokens must be there.
  explicit PlamoUnigram(const PlamoPieces& file);

  std::unique_ptr<Scratch> make_scratch() const override;
  void encode_tokens(
      std::string_view piece, Scratch& scratch, std::vector<Token>& tokens
  ) const override;

 private:
  struct Work;
  struct Step;

  void find_steps(std::string_view text, Work& work) const;
  Step best_step(
      std::string_view text, size_t begin, const Work& work, MatchEffort& effort
  ) const;

  TokenAutomaton pieces_;
  std::vector<int64_t> costs_;  // by id
  std::array<int32_t, 256> bytes_;
};

}  // namespace mlxcel::tokenizer
