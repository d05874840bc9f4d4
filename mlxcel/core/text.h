#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mlxcel {

/// The text with A to Z as a to z.
std::string ascii_lower(std::string_view text);

/// "a, b, c and 9 more": the first `most` names; empty if there are none.
std::string list_names(const std::vector<std::string>& names, size_t most);

/// A text that is there more than once; empty if each is there once. Sorts
/// hashes, which is much faster than sorting names with long common beginnings.
std::optional<std::string_view> find_repeated(
    std::span<const std::string_view> texts
);

}  // namespace mlxcel
