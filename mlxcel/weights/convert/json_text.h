#pragma once

#include <string>
#include <string_view>

namespace mlxcel::convert {

/// True if the text is well-formed UTF-8 (Unicode 16, table 3-7).
bool is_utf8(std::string_view text);

/// Appends text, which is UTF-8, to `out` as a JSON string.
void append_json(std::string& out, std::string_view text);

}  // namespace mlxcel::convert
