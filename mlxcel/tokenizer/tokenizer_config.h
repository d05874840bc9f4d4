#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mlxcel/tokenizer/split/added_tokens.h"

namespace mlxcel::tokenizer {

/// What tokenizer_config.json says beside the tokenizer itself.
struct TokenizerConfig {
  std::string tokenizer_class;
  /// The classes that auto_map names, e.g.
  /// "tokenization_qwen.QWenTokenizer".
  std::vector<std::string> auto_classes;
  std::string bos_token;  // empty: none
  std::string eos_token;
  std::string unk_token;
  std::string pad_token;
  std::string cls_token;
  std::string sep_token;
  std::string mask_token;
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::optional<bool> add_prefix_space;
  std::optional<bool> legacy;
  // Of PLaMo's file: how long a run of a character stands by itself.
  std::optional<size_t> break_around_repeated_chars;
  std::optional<size_t> break_around_consecutive_spaces;
  // Of BERT's files.
  std::optional<bool> do_lower_case;
  std::optional<bool> do_basic_tokenize;
  std::optional<bool> tokenize_chinese_chars;
  std::optional<bool> strip_accents;
  std::vector<std::string> never_split;
  /// added_tokens_decoder in order of id, or where that is absent the file
  /// added_tokens.json; none is normalized unless it says so.
  std::vector<AddedToken> added_tokens;

  /// Whether tokenizer_class or auto_map names this class.
  bool has_class(const std::string& name) const;
};

/// Reads the file in a model directory; without one, all is empty. Tokens are
/// strings or objects with `content`. Throws Error(invalid_input).
TokenizerConfig read_tokenizer_config(const std::string& model_dir);

}  // namespace mlxcel::tokenizer
