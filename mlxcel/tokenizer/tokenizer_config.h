#pragma once

#include <optional>
#include <string>

namespace mlxcel::tokenizer {

/// What tokenizer_config.json says beside the tokenizer itself.
struct TokenizerConfig {
  std::string tokenizer_class;
  std::string bos_token;  // empty: none
  std::string eos_token;
  std::string unk_token;
  std::string pad_token;
  std::optional<bool> add_bos_token;
};

/// Reads the file in a model directory; without one, all is empty. Tokens are
/// strings or objects with `content`. Throws Error(invalid_input).
TokenizerConfig read_tokenizer_config(const std::string& model_dir);

}  // namespace mlxcel::tokenizer
