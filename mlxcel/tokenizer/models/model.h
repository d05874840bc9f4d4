#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "mlxcel/tokenizer/models/vocab.h"

namespace mlxcel::tokenizer {

/// A token and the bytes that it stands for.
struct Token {
  int32_t id;
  size_t begin;
  size_t end;
};

/// Turns pieces of text into ids: what a tokenizer.json file calls its model.
class Model {
 public:
  /// What one call of encode leaves for the next: buffers and caches.
  class Scratch {
   public:
    virtual ~Scratch() = default;
  };

  virtual ~Model() = default;

  const Vocab& vocab() const {
    return vocab_;
  }
  virtual std::unique_ptr<Scratch> make_scratch() const = 0;
  /// Appends the ids of a piece that is not empty. Only one thread at a time
  /// may use a scratch.
  virtual void encode(
      std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids
  ) const = 0;
  /// The same with the bytes of the piece that each token stands for, as the
  /// official library counts them.
  virtual void encode_tokens(
      std::string_view piece, Scratch& scratch, std::vector<Token>& tokens
  ) const = 0;

  /// Whether a token of this id counts as spelt like the text that it stands
  /// for, and not as in the vocabulary.
  virtual bool spells_by_text(int32_t) const {
    return false;
  }

 protected:
  explicit Model(Vocab vocab) : vocab_(std::move(vocab)) {}

 private:
  Vocab vocab_;
};

}  // namespace mlxcel::tokenizer
