#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mlxcel/tokenizer/encoding.h"

namespace mlxcel {

/// Text to ids and back, as the official tokenizer of the checkpoint does it.
/// Immutable; safe to use from several threads.
class Tokenizer {
 public:
  /// The tokenizer of a model directory, from the first of its files that is
  /// there: tokenizer.json, tokenizer.model, tiktoken.model, *.tiktoken,
  /// tokenizer.jsonl, vocab.json with merges.txt, vocab.txt; with
  /// tokenizer_config.json beside it. Throws Error(not_found) naming what was
  /// looked for, or Error(io | invalid_input | unsupported) naming the file
  /// and the field.
  static std::shared_ptr<const Tokenizer> load(const std::string& model_dir);
  /// A tokenizer.json file by itself. Throws
  /// Error(io | invalid_input | unsupported) naming the file and the field.
  static std::shared_ptr<const Tokenizer> from_json(const std::string& path);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// Ids of a text of any length, also of an empty one. Throws
  /// Error(invalid_input) for invalid UTF-8 or where a pattern of the file
  /// takes too long.
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {})
      const;

  /// The same ids with their bytes in the text. Throws
  /// Error(invalid_input) also where the text can't be shortened as the file
  /// says.
  Encoding encode_with_offsets(
      std::string_view text, EncodeOptions options = {}
  ) const;
  /// Two texts as one input, as for a cross-encoder.
  Encoding encode_pair(
      std::string_view first,
      std::string_view second,
      EncodeOptions options = {}
  ) const;

  /// Text of ids. Ids without a token are left out, `skip_special`: special
  /// tokens too. Bytes that are no UTF-8 become U+FFFD.
  std::string decode(std::span<const int32_t> ids, bool skip_special) const;

  /// Highest id + 1.
  size_t vocab_size() const;
  std::optional<int32_t> token_to_id(std::string_view token) const;
  /// The token as the vocabulary spells it; empty if the id has none.
  std::string id_to_token(int32_t id) const;
  bool is_special(int32_t id) const;

  /// Tokens of tokenizer_config.json; empty if it names none.
  const std::string& bos_token() const;
  const std::string& eos_token() const;
  const std::string& unk_token() const;
  const std::string& pad_token() const;
  /// Their ids; empty if there is none.
  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> eos_id() const;
  std::optional<int32_t> pad_id() const;
  /// The id that encode puts in front of every text, whatever it is called.
  std::optional<int32_t> added_bos_id() const;

 private:
  friend class StreamingDetokenizer;
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

/// Ranges of bytes of a text as ranges of its characters (code points).
std::vector<ByteRange> character_offsets(
    std::string_view text, std::span<const ByteRange> bytes
);

/// Encodes what a chat template has rendered. A text that already starts with
/// a BOS (`<bos>`, `<s>` or the tokenizer's own) is not given another; the
/// one rule for all who encode prompts.
std::vector<int32_t> encode_rendered_prompt(
    const Tokenizer& tokenizer, std::string_view prompt
);

}  // namespace mlxcel
