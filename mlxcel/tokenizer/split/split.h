#pragma once

#include <memory>

#include "mlxcel/core/json.h"
#include "mlxcel/tokenizer/normalize/text.h"
#include "mlxcel/tokenizer/regex/regex.h"

namespace mlxcel::tokenizer {

/// What becomes of a delimiter: "the-final--countdown" cut at "-".
enum class SplitBehavior {
  removed,               // the final countdown
  isolated,              // the - final - - countdown
  merged_with_previous,  // the- final- - countdown
  merged_with_next,      // the -final - -countdown
  contiguous             // the - final -- countdown
};

/// Throws Error(invalid_input) naming the field.
SplitBehavior parse_split_behavior(const Json& json);

/// Gathers delimiters and what stands between them, in order and without
/// gaps, into the pieces of a behaviour.
class SplitCollector {
 public:
  SplitCollector(const Piece& whole, SplitBehavior behavior, PieceSink& sink)
      : whole_(whole), behavior_(behavior), sink_(sink) {}

  /// `begin` and `end` count within the whole piece.
  void add(size_t begin, size_t end, bool delimiter);
  void finish();

 private:
  void emit(size_t begin, size_t end);
  void join(size_t begin, size_t end, bool delimiter, bool joined);

  Piece whole_;
  SplitBehavior behavior_;
  PieceSink& sink_;
  size_t begin_ = 0;  // of the pending piece
  size_t end_ = 0;
  bool pending_ = false;
  bool previous_ = false;  // whether the one before was a delimiter
};

/// Cuts at the matches of a pattern; `invert`: at what is between them.
void split_by_pattern(
    const Piece& piece,
    const Regex& pattern,
    SplitBehavior behavior,
    bool invert,
    PieceSink& sink
);

/// Cuts at the characters that have an attribute (unicode.h).
void split_by_attribute(
    const Piece& piece,
    uint32_t attribute,
    SplitBehavior behavior,
    PieceSink& sink
);

}  // namespace mlxcel::tokenizer
