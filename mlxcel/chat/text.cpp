#include "mlxcel/chat/text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

#include "mlxcel/chat/unicode_tables.h"

namespace mlxcel::chat {

namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_cased(char32_t c) {
  return is_lower(c) || is_upper(c) || is_title(c);
}

// Unicode's Case_Ignorable: marks, modifiers and the punctuation inside words.
bool is_case_ignorable(char32_t c) {
  constexpr std::u32string_view kInsideWords =
      U"'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55"
      U"\uff07\uff0e\uff1a";
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return kInsideWords.find(c) != std::u32string_view::npos;
  }
}

// Whether the capital sigma at [begin, end) ends a word (Unicode's
// Final_Sigma: a cased letter before it, none after it).
bool is_final_sigma(std::string_view text, size_t begin, size_t end) {
  bool cased_before = false;
  for (size_t p = begin; p > 0;) {
    p = previous_position(text, p);
    size_t q = p;
    char32_t c = next_code_point(text, q);
    if (!is_case_ignorable(c)) {
      cased_before = is_cased(c);
      break;
    }
  }
  if (!cased_before) {
    return false;
  }
  while (end < text.size()) {
    char32_t c = next_code_point(text, end);
    if (!is_case_ignorable(c)) {
      return !is_cased(c);
    }
  }
  return true;
}

void append_upper(std::string& out, char32_t c) {
  if (const SpecialCase* special = find_special_case(c)) {
    out += special->upper;
  } else {
    append_code_point(
        out, static_cast<char32_t>(utf8proc_toupper(static_cast<int32_t>(c)))
    );
  }
}

void append_title(std::string& out, char32_t c) {
  const SpecialCase* special = find_special_case(c);
  if (special && !special->title.empty()) {
    out += special->title;
  } else {
    append_code_point(
        out, static_cast<char32_t>(utf8proc_totitle(static_cast<int32_t>(c)))
    );
  }
}

// `begin` and `end` are the bytes of `c` in `text`.
void append_lower(
    std::string& out,
    char32_t c,
    std::string_view text,
    size_t begin,
    size_t end
) {
  constexpr char32_t kCapitalSigma = 0x3a3;
  constexpr char32_t kDottedCapitalI = 0x130;
  if (c == kCapitalSigma) {
    out += is_final_sigma(text, begin, end) ? "\u03c2" : "\u03c3";
  } else if (c == kDottedCapitalI) {
    out += "i\u0307";
  } else {
    append_code_point(
        out, static_cast<char32_t>(utf8proc_tolower(static_cast<int32_t>(c)))
    );
  }
}

}  // namespace

char32_t next_code_point(std::string_view text, size_t& position) {
  auto at = [text](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  char32_t c = at(position);
  if (c < 0x80) {
    position += 1;
    return c;
  }
  if (c < 0xe0) {
    c = (c & 0x1f) << 6 | (at(position + 1) & 0x3f);
    position += 2;
  } else if (c < 0xf0) {
    c = (c & 0x0f) << 12 | (at(position + 1) & 0x3f) << 6 |
        (at(position + 2) & 0x3f);
    position += 3;
  } else {
    c = (c & 0x07) << 18 | (at(position + 1) & 0x3f) << 12 |
        (at(position + 2) & 0x3f) << 6 | (at(position + 3) & 0x3f);
    position += 4;
  }
  return c;
}

size_t previous_position(std::string_view text, size_t position) {
  do {
    --position;
  } while (position > 0 && (text[position] & 0xc0) == 0x80);
  return position;
}

void append_code_point(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

size_t count_code_points(std::string_view text) {
  size_t count = 0;
  for (char c : text) {
    count += (c & 0xc0) != 0x80;
  }
  return count;
}

size_t byte_offset(std::string_view text, size_t index) {
  size_t position = 0;
  for (; index > 0 && position < text.size(); --index) {
    next_code_point(text, position);
  }
  return std::min(position, text.size());
}

bool is_space(char32_t c) {
  if (c < 0x80) {
    return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20);
  }
  return c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
         c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_alpha(char32_t c) {
  utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_ND;
}

bool is_digit(char32_t c) {
  return is_decimal(c) || is_other_digit(c);
}

bool is_numeric(char32_t c) {
  utf8proc_category_t kind = category(c);
  return (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO) ||
         is_letter_numeral(c);
}

bool is_printable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return c == ' ';
    default:
      return true;
  }
}

bool is_lower(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL || is_other_lower(c);
}

bool is_upper(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU || is_other_upper(c);
}

bool is_title(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LT;
}

bool is_word(char32_t c) {
  return c == '_' || is_alnum(c);
}

std::string to_upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (text[i] >= 0) {
      char c = text[i++];
      out += c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    } else {
      append_upper(out, next_code_point(text, i));
    }
  }
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (text[i] >= 0) {
      char c = text[i++];
      out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    } else {
      size_t begin = i;
      char32_t c = next_code_point(text, i);
      append_lower(out, c, text, begin, i);
    }
  }
  return out;
}

std::string to_title(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    char32_t c = next_code_point(text, i);
    if (inside) {
      append_lower(out, c, text, begin, i);
    } else {
      append_title(out, c);
    }
    inside = is_cased(c);
  }
  return out;
}

std::string to_capitalized(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    char32_t c = next_code_point(text, i);
    if (begin == 0) {
      append_title(out, c);
    } else {
      append_lower(out, c, text, begin, i);
    }
  }
  return out;
}

std::string to_folded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    char32_t c = next_code_point(text, i);
    utf8proc_int32_t folded[4];
    int boundary = 0;
    utf8proc_ssize_t count = utf8proc_decompose_char(
        static_cast<int32_t>(c), folded, 4, UTF8PROC_CASEFOLD, &boundary
    );
    if (count < 1 || count > 4) {
      append_code_point(out, c);
    }
    for (utf8proc_ssize_t k = 0; k < count && count <= 4; ++k) {
      append_code_point(out, static_cast<char32_t>(folded[k]));
    }
  }
  return out;
}

std::string swap_case(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    char32_t c = next_code_point(text, i);
    if (is_upper(c)) {
      append_lower(out, c, text, begin, i);
    } else if (is_lower(c)) {
      append_upper(out, c);
    } else {
      append_code_point(out, c);
    }
  }
  return out;
}

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string quote_python(std::string_view text) {
  bool double_quotes = text.find('\'') != std::string_view::npos &&
                       text.find('"') == std::string_view::npos;
  char quote = double_quotes ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    char32_t c = next_code_point(text, i);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out += text.substr(begin, i - begin);
    } else if (c < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
    }
  }
  out += quote;
  return out;
}

}  // namespace mlxcel::chat
