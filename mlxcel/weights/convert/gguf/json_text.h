#pragma once

#include <string>
#include <string_view>

namespace mlxcel::convert {

/// Appends text, which is UTF-8, to `out` as a JSON string.
void append_json(std::string& out, std::string_view text);

}  // namespace mlxcel::convert
