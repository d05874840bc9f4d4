#pragma once

#include <memory>
#include <string_view>

#include "mlxcel/chat/ast.h"

namespace mlxcel::chat {

/// Parses a template of the language that chat templates use: Jinja 3.1 with
/// trim_blocks, lstrip_blocks, loop controls and `generation` blocks. The
/// source is valid UTF-8. Throws SyntaxFault (lexer.h).
std::shared_ptr<const Program> parse_template(std::string_view source);

}  // namespace mlxcel::chat
