#pragma once

#include <string>
#include <string_view>

#include "mlxcel/chat/arguments.h"
#include "mlxcel/chat/value.h"

namespace mlxcel::chat {

class Interpreter;

/// `template % values`: Python's printf-style formatting. With `markup` what
/// is put in is escaped. Throws Fault.
std::string format_printf(
    std::string_view pattern, const Value& values, bool markup
);

/// `template.format(arguments)`: Python's format strings, attributes and items
/// looked up by the rules of the template language. With `markup` what is put
/// in is escaped. Throws Fault.
std::string format_braces(
    Interpreter& interpreter,
    std::string_view pattern,
    const Arguments& arguments,
    bool markup
);

}  // namespace mlxcel::chat
