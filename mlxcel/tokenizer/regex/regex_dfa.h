#pragma once

#include <memory>

#include "mlxcel/tokenizer/regex/regex.h"
#include "mlxcel/tokenizer/regex/regex_syntax.h"

namespace mlxcel::tokenizer {

/// The tree as a deterministic automaton that finds the very match that a
/// backtracking matcher finds (leftmost, first alternative first), in time
/// linear in what it looks at. Null where that cannot be: anchors,
/// look-behind, look-ahead at more than one character, atomic groups,
/// possessive repeats that are more than a matter of speed, too many states.
std::shared_ptr<const Regex> compile_dfa(const RegexNode& tree);

}  // namespace mlxcel::tokenizer
