#pragma once

#include <string_view>
#include <vector>

#include "mlxcel/tokenizer/unicode/code_set.h"

namespace mlxcel::tokenizer {

/// A parsed pattern of Oniguruma's default syntax, which tokenizer.json files
/// are written in. Characters and classes have become sets of code points
/// (case-insensitive ones hold both cases), groups have been dissolved.
struct RegexNode {
  enum class Kind {
    empty,
    set,
    concat,
    alternate,
    repeat,            // children[0], min to max times
    look,              // children[0] ahead or behind, negative or not
    atomic,            // children[0] without backtracking into it
    line_begin,        // ^
    line_end,          // $
    text_begin,        // \A
    text_end,          // \z
    text_end_newline,  // \Z
    word_boundary,     // \b
    no_word_boundary,  // \B
  };
  enum class Greed { greedy, lazy, possessive };
  static constexpr unsigned unbounded = ~0u;

  Kind kind = Kind::empty;
  CodeSet set = {};
  std::vector<RegexNode> children = {};
  unsigned min = 0;
  unsigned max = 0;
  Greed greed = Greed::greedy;
  bool negative = false;
  bool behind = false;
};

/// Throws Error(invalid_input) for a malformed pattern and Error(unsupported)
/// naming the construct for one that is legal and not implemented.
RegexNode parse_regex(std::string_view pattern);

/// The set that \w stands for.
const CodeSet& regex_word_set();

}  // namespace mlxcel::tokenizer
