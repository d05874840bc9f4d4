#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace mlxcel::apps {

/// "1.50 GiB", "12.0 MiB", "3.4 KiB", "17 B".
std::string size_words(uint64_t bytes);

/// How long before `now` (both in seconds since 1970) something was: "just
/// now", "5 min ago", "1 hour ago" up to years; "-" if it is unknown.
std::string age_words(std::optional<int64_t> then, int64_t now);

/// Characters of a UTF-8 text.
size_t columns(const std::string& text);

/// A text of more than 40 characters cut to that with an ellipsis.
std::string shortened(const std::string& text);

}  // namespace mlxcel::apps
