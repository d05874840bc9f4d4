#pragma once

#include <cstdint>
#include <string_view>

namespace mlxcel::chat {

/// A character whose other case has several characters. Source: Unicode's
/// SpecialCasing.txt, its unconditional lines. `title` is empty where the
/// title case is the simple mapping.
struct SpecialCase {
  char32_t character;
  std::string_view upper;
  std::string_view title;
};

/// The special case of a character, or null.
const SpecialCase* find_special_case(char32_t c);
/// Numeric type "digit" without being a decimal digit (superscripts, circled
/// digits). Source: Unicode's DerivedNumericType.txt.
bool is_other_digit(char32_t c);
/// Lower or upper case without being such a letter (ª, Roman numerals).
/// Source: Unicode's PropList.txt, Other_Lowercase and Other_Uppercase.
bool is_other_lower(char32_t c);
bool is_other_upper(char32_t c);
/// A numeral among the letters (the CJK ones). Source: as above.
bool is_letter_numeral(char32_t c);

}  // namespace mlxcel::chat
