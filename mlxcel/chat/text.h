#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Strings as Python has them, kept as valid UTF-8: positions and lengths count
// code points, white space and case are Unicode's.

namespace mlxcel::chat {

/// The code point at byte `position`, which moves behind it.
char32_t next_code_point(std::string_view text, size_t& position);
/// The start of the code point that ends at byte `position` (> 0).
size_t previous_position(std::string_view text, size_t position);
void append_code_point(std::string& out, char32_t c);
size_t count_code_points(std::string_view text);
/// Byte offset of code point `index`; the size of the text if it has fewer.
size_t byte_offset(std::string_view text, size_t index);

/// str.isspace and so on, for one character.
bool is_space(char32_t c);
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_printable(char32_t c);
bool is_lower(char32_t c);
bool is_upper(char32_t c);
bool is_title(char32_t c);
inline bool is_alnum(char32_t c) {
  return is_alpha(c) || is_decimal(c) || is_digit(c) || is_numeric(c);
}
/// What `\w` matches and identifiers are made of.
bool is_word(char32_t c);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
/// str.title: every run of cased letters starts with a capital.
std::string to_title(std::string_view text);
std::string to_capitalized(std::string_view text);
std::string to_folded(std::string_view text);
std::string swap_case(std::string_view text);

enum class Side { left, right, both };
/// Without the characters of `chars` (white space if empty) at the ends.
std::string_view strip(
    std::string_view text, Side side, std::optional<std::string_view> chars = {}
);

/// Byte offset of `needle` at or after `from`; npos if absent. Linear time.
size_t find_text(
    std::string_view text, std::string_view needle, size_t from = 0
);
/// Byte offset of the last `needle`; npos if absent. Linear time.
size_t find_last_text(std::string_view text, std::string_view needle);

/// str.split, str.rsplit: at most `limit` cuts (-1: all), at white space if
/// there is no separator. The separator is not empty.
std::vector<std::string_view> split(
    std::string_view text,
    std::optional<std::string_view> separator,
    int64_t limit
);
std::vector<std::string_view> split_right(
    std::string_view text,
    std::optional<std::string_view> separator,
    int64_t limit
);
std::vector<std::string_view> split_lines(std::string_view text, bool keep);

/// str.replace with at most `limit` replacements (-1: all).
std::string replace(
    std::string_view text,
    std::string_view old,
    std::string_view by,
    int64_t limit
);
/// str.count: matches that don't overlap.
size_t count_text(std::string_view text, std::string_view needle);

/// `&`, `<`, `>`, `'` and `"` as HTML entities.
std::string escape_html(std::string_view text);
/// As repr() shows a string: quoted, control characters escaped.
std::string quote_python(std::string_view text);

}  // namespace mlxcel::chat
