#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace mlxcel {

/// Offset of the first byte that is not well-formed UTF-8 (Unicode 15, table
/// 3-7: no surrogates, no overlong forms, at most U+10FFFF).
std::optional<size_t> find_invalid_utf8(std::string_view text);

}  // namespace mlxcel
