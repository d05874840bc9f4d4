#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mlxcel::chat {

/// textwrap.wrap without tab expansion and replacement of white space: lines
/// of at most `width` (> 0) characters. Source: CPython 3.11,
/// Lib/textwrap.py.
std::vector<std::string> wrap_line(
    std::string_view line, size_t width, bool break_long, bool break_hyphens
);

/// html.unescape; throws Fault for a named reference beyond those of Latin-1
/// and a few common ones.
std::string unescape_html(std::string_view text);

/// Markup.striptags: without tags and comments, white space collapsed.
std::string strip_tags(std::string_view text);

}  // namespace mlxcel::chat
