#pragma once

#include <memory>
#include <string>

#include "mlxcel/core/json.h"
#include "mlxcel/tokenizer/decode/decoder.h"
#include "mlxcel/tokenizer/regex/regex.h"
#include "mlxcel/tokenizer/split/metaspace.h"

namespace mlxcel::tokenizer {

/// Replaces the matches of a pattern in each token.
struct DecodeReplace {
  explicit DecodeReplace(const Json& json);

  std::shared_ptr<const Regex> pattern;
  std::string literal;  // what the pattern matches, empty if it is none
  std::string content;
};

/// Takes up to `start` characters from the left of each token and up to
/// `stop` from the right, as long as they are `content`.
struct DecodeStrip {
  explicit DecodeStrip(const Json& json);

  std::string content;
  uint64_t start;
  uint64_t stop;
};

/// Joins words: tokens other than the first get a space in front, unless
/// they begin with the prefix, which goes.
struct DecodeWordPiece {
  explicit DecodeWordPiece(const Json& json);

  std::string prefix;
  bool cleanup;
};

/// Leaves out repeated tokens and the pad token.
struct DecodeCtc {
  explicit DecodeCtc(const Json& json);

  std::string pad_token;
  std::string word_delimiter_token;
  bool cleanup;
};

std::unique_ptr<DecodeStep> make_join_step(const char* separator);
std::unique_ptr<DecodeStep> make_byte_level_step(DecodeMode mode);
std::unique_ptr<DecodeStep> make_byte_fallback_step(DecodeMode mode);
std::unique_ptr<DecodeStep> make_replace_step(
    std::shared_ptr<const DecodeReplace> replace, DecodeMode mode
);
std::unique_ptr<DecodeStep> make_strip_step(
    const DecodeStrip& strip, DecodeMode mode
);
std::unique_ptr<DecodeStep> make_metaspace_step(
    std::shared_ptr<const Metaspace> metaspace, DecodeMode mode
);
std::unique_ptr<DecodeStep> make_word_piece_step(
    std::shared_ptr<const DecodeWordPiece> word_piece, DecodeMode mode
);
std::unique_ptr<DecodeStep> make_ctc_step(
    std::shared_ptr<const DecodeCtc> ctc, DecodeMode mode
);
/// The suffix of a word becomes a space, that of the last token nothing.
std::unique_ptr<DecodeStep> make_bpe_step(std::string suffix, DecodeMode mode);
/// A step that must see the one joined token whole.
std::unique_ptr<DecodeStep> make_whole_step(std::unique_ptr<DecodeStep> step);

}  // namespace mlxcel::tokenizer
