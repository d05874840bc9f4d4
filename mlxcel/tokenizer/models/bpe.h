#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "mlxcel/tokenizer/models/merge_table.h"
#include "mlxcel/tokenizer/models/model.h"

namespace mlxcel::tokenizer {

struct BpeOptions {
  std::optional<std::string> unk_token;
  std::string continuing_subword_prefix;
  std::string end_of_word_suffix;
  bool fuse_unk = false;
  bool byte_fallback = false;
  bool ignore_merges = false;
  /// MergeTable: by_result.
  bool rank_by_result = false;
  /// Pieces are bytes to be read in the byte-level alphabet.
  bool reads_bytes = false;
};

/// Byte-pair encoding (Sennrich et al. 2016), as the official library does
/// it: merges by rank, of equal ones the leftmost first.
class Bpe : public Model {
 public:
  Bpe(Vocab vocab,
      const std::vector<MergeTable::Merge>& merges,
      BpeOptions options);

  std::unique_ptr<Scratch> make_scratch() const override;
  /// Throws Error(invalid_input) if an unknown character needs an unknown
  /// token that the vocabulary lacks.
  void encode(
      std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids
  ) const override;
  void encode_tokens(
      std::string_view piece, Scratch& scratch, std::vector<Token>& tokens
  ) const override;

 private:
  struct Work;
  using Lengths = std::vector<uint32_t>;

  void encode_word(std::string_view word, Work& work, std::vector<int32_t>& ids)
      const;
  int32_t find_whole(std::string_view word, Work& work) const;
  bool symbols_of_bytes(std::string_view word, Work& work) const;
  void symbols_of_characters(
      std::string_view word, Work& work, Lengths* lengths
  ) const;
  int32_t unk_id() const;
  bool add_byte_tokens(std::string_view character, Work& work) const;
  void merge_short(std::vector<int32_t>& symbols, Work& work) const;
  void merge_in_place(std::vector<int32_t>& symbols, Work& work) const;
  void find_cuts(const std::vector<MergeTable::Merge>& merges);
  bool cut_before_mark(std::string_view before) const;

  BpeOptions options_;
  MergeTable merges_;
  std::array<int32_t, 256> byte_symbols_{};   // of the byte-level alphabet
  std::array<int32_t, 256> byte_fallback_{};  // <0x00> to <0xFF>
  bool decorates_ = false;                    // has a prefix or a suffix
  bool cuts_at_mark_ = false;
  std::vector<char32_t> joined_to_mark_;
};

}  // namespace mlxcel::tokenizer
