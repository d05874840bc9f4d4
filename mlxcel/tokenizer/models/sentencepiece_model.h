#pragma once

#include <array>
#include <memory>
#include <vector>

#include "mlxcel/tokenizer/files/sentencepiece_file.h"
#include "mlxcel/tokenizer/models/model.h"
#include "mlxcel/tokenizer/models/token_automaton.h"

namespace mlxcel::tokenizer {

/// The pieces of a sentencepiece model, and what becomes of text that is
/// none of them.
class SentencePieceModel : public Model {
 public:
  /// By the kind of the file.
  static std::unique_ptr<SentencePieceModel> make(const SentencePieceFile& file
  );

  void encode(
      std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids
  ) const override;
  void encode_tokens(
      std::string_view piece, Scratch& scratch, std::vector<Token>& tokens
  ) const override;

  SentencePieceFile::Type type(int32_t id) const {
    return types_[static_cast<size_t>(id)];
  }
  /// The user-defined pieces, which no normalization changes.
  const TokenAutomaton& user_defined() const {
    return user_defined_;
  }

 protected:
  using Type = SentencePieceFile::Type;

  explicit SentencePieceModel(const SentencePieceFile& file);

  /// Appends ids or tokens: bytes in place of unknown text, or one id for a
  /// run of it (src/sentencepiece_processor.cc, EncodeOptimized).
  class Output {
   public:
    Output(
        const SentencePieceModel& model,
        std::string_view piece,
        std::vector<int32_t>* ids,
        std::vector<Token>* tokens
    )
        : model_(model), piece_(piece), ids_(ids), tokens_(tokens) {}
    /// `text` is a part of the piece; `id` is -1 for unknown text.
    void add(std::string_view text, int32_t id);

   private:
    void put(int32_t id, size_t begin, size_t end);
    void put_bytes(std::string_view text, size_t begin);

    const SentencePieceModel& model_;
    std::string_view piece_;
    std::vector<int32_t>* ids_;
    std::vector<Token>* tokens_;
    bool after_unknown_ = false;
  };

  virtual void encode_piece(
      std::string_view piece, Scratch& scratch, Output& output
  ) const = 0;

  bool is_user_defined(int32_t id) const {
    return type(id) == Type::user_defined;
  }
  /// Neither control nor unknown nor a byte.
  bool is_text(int32_t id) const {
    return type(id) == Type::normal || type(id) == Type::user_defined ||
           type(id) == Type::unused;
  }
  bool byte_fallback() const {
    return byte_fallback_;
  }

 private:
  std::vector<Type> types_;
  TokenAutomaton user_defined_;
  bool byte_fallback_;
  int32_t unknown_;
  std::array<int32_t, 256> bytes_;
};

/// The likeliest of all ways to cut a text into pieces (Kudo 2018;
/// src/unigram_model.cc, EncodeOptimized: scores in float32, of equal ways
/// the one found first).
class SentencePieceUnigram : public SentencePieceModel {
 public:
  explicit SentencePieceUnigram(const SentencePieceFile& file);

  std::unique_ptr<Scratch> make_scratch() const override;

 private:
  struct Work;
  void encode_piece(std::string_view piece, Scratch& scratch, Output& output)
      const override;
  void find_ways(std::string_view text, Work& work) const;

  TokenAutomaton pieces_;
  std::vector<float> scores_;  // by id
  float unknown_score_;
};

/// Byte-pair encoding by the score of the merged piece, of equal ones the
/// leftmost first (src/bpe_model.cc, SampleEncode). User-defined pieces are
/// found first and stay whole; unused ones are taken apart again.
class SentencePieceBpe : public SentencePieceModel {
 public:
  explicit SentencePieceBpe(const SentencePieceFile& file);

  std::unique_ptr<Scratch> make_scratch() const override;
  void encode(
      std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids
  ) const override;

 private:
  struct Work;
  void find_cuts(const SentencePieceFile& file);
  void encode_piece(std::string_view piece, Scratch& scratch, Output& output)
      const override;
  void encode_word(std::string_view word, Work& work, std::vector<int32_t>& ids)
      const;
  void split(std::string_view text, Work& work) const;
  void update(uint32_t at, std::string_view text, Work& work) const;
  void merge(std::string_view text, Work& work) const;
  void take_apart(
      std::string_view piece, int depth, const Work& work, Output& output
  ) const;

  std::vector<uint32_t> ranks_;  // by id; lower merges earlier
  bool has_unused_ = false;
  bool cuts_at_mark_ = false;
};

}  // namespace mlxcel::tokenizer
