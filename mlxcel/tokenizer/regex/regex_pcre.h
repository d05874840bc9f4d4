#pragma once

#include <memory>
#include <string_view>

#include "mlxcel/tokenizer/regex/regex.h"
#include "mlxcel/tokenizer/regex/regex_syntax.h"

namespace mlxcel::tokenizer {

/// The tree as a PCRE2 program with match limits. `pattern` is for messages.
/// Throws Error(unsupported) if PCRE2 refuses it.
std::shared_ptr<const Regex> compile_pcre(
    const RegexNode& tree, std::string_view pattern
);

}  // namespace mlxcel::tokenizer
