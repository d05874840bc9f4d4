#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mlxcel/tokenizer/encoding.h"
#include "mlxcel/tokenizer/models/vocab.h"
#include "mlxcel/tokenizer/normalize/normalizer.h"
#include "mlxcel/tokenizer/split/string_matcher.h"

namespace mlxcel::tokenizer {

/// A token that is found in the text before the model sees it.
struct AddedToken {
  std::string content;
  bool single_word = false;  // not inside of words
  bool lstrip = false;       // swallows spaces on its left
  bool rstrip = false;
  bool normalized = true;  // looked for in the normalized text
  bool special = false;
  bool found = true;  // looked for at all, not just known by its id
  int32_t id = -1;    // 0 to Vocab::max_id, or the library's choice
};

class AddedTokens {
 public:
  AddedTokens() = default;
  AddedTokens(AddedTokens&&) = default;
  AddedTokens& operator=(AddedTokens&&) = default;
  /// A token without an id gets that of `vocab`, else a new one behind all
  /// others: so does the official library, whatever a tokenizer.json file
  /// says. `normalizer` may be null.
  AddedTokens(
      std::vector<AddedToken> tokens,
      const Vocab& vocab,
      const Normalizer* normalizer
  );

  /// A token, or the text between tokens (id -1).
  struct Part {
    size_t begin;
    size_t end;
    int32_t id;
  };
  /// Cuts a text at the tokens that are looked for before (`normalized`
  /// false) or after normalization. No part of text is empty.
  void cut(
      std::string_view text,
      bool normalized,
      FindAdded which,
      std::vector<Part>& parts
  ) const;

  /// Makes a special token an ordinary one; leaves out unknown ones.
  void make_ordinary(std::string_view content);

  /// Null if no added token has this id.
  const AddedToken* find(int32_t id) const {
    bool known = id >= 0 && static_cast<size_t>(id) < by_id_.size() &&
                 by_id_[static_cast<size_t>(id)] != none;
    return known ? &tokens_[by_id_[static_cast<size_t>(id)]] : nullptr;
  }
  /// The id or -1.
  int32_t find(std::string_view content) const;
  bool is_special(int32_t id) const {
    const AddedToken* token = find(id);
    return token != nullptr && token->special;
  }
  /// Highest id + 1.
  size_t id_limit() const {
    return by_id_.size();
  }

 private:
  static constexpr uint32_t none = ~0u;

  const AddedToken* accept(
      std::string_view text, const StringMatcher::Match& match, FindAdded which
  ) const;

  std::vector<AddedToken> tokens_;
  std::vector<uint32_t> by_id_;  // id -> place in tokens_, or none
  std::unordered_map<std::string_view, int32_t> by_content_;  // of tokens_
  StringMatcher raw_;
  StringMatcher normalized_;
};

}  // namespace mlxcel::tokenizer
