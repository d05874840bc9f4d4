#include "mlxcel/chat/text_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "mlxcel/chat/budget.h"
#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/text.h"

namespace mlxcel::chat {

namespace {

// What textwrap takes for white space: that of ASCII.
bool is_blank(char32_t c) {
  return (c >= '\t' && c <= '\r') || c == ' ';
}

bool is_letter(char32_t c) {
  return is_word(c) && !is_decimal(c);
}

/// A line as code points, cut into what must not be cut further.
class Chunks {
 public:
  Chunks(std::string_view line, bool at_hyphens) : at_hyphens_(at_hyphens) {
    for (size_t i = 0; i < line.size();) {
      text_.push_back(next_code_point(line, i));
    }
  }

  /// The end of the chunk that starts at `begin`.
  size_t end_of(size_t begin) const {
    size_t at = begin;
    if (is_blank(text_[at])) {
      while (at < text_.size() && is_blank(text_[at])) {
        ++at;
      }
      return at;
    }
    if (!at_hyphens_) {
      while (at < text_.size() && !is_blank(text_[at])) {
        ++at;
      }
      return at;
    }
    if (size_t dash = dash_end(begin)) {
      return dash;
    }
    for (++at; at < text_.size() && !is_blank(text_[at]); ++at) {
      if (hyphenates(at)) {
        return at + 1;
      }
      if (dash_end(at)) {
        return at;
      }
    }
    return at;
  }

  const std::u32string& text() const {
    return text_;
  }

 private:
  bool letter(size_t at) const {
    return at < text_.size() && is_letter(text_[at]);
  }
  bool hyphen(size_t at) const {
    return at < text_.size() && text_[at] == '-';
  }

  // The end of a dash between words that starts here, or 0.
  size_t dash_end(size_t at) const {
    constexpr std::u32string_view kMarks = U"!\"'&.,?";
    if (at == 0 || !hyphen(at) || !hyphen(at + 1)) {
      return 0;
    }
    char32_t before = text_[at - 1];
    if (!is_word(before) && kMarks.find(before) == kMarks.npos) {
      return 0;
    }
    while (hyphen(at)) {
      ++at;
    }
    return at < text_.size() && is_word(text_[at]) ? at : 0;
  }

  // A hyphen with two letters before it ("ab-", "a-b-") and behind it.
  bool hyphenates(size_t at) const {
    if (!hyphen(at) || at < 2 || !letter(at - 1)) {
      return false;
    }
    bool before =
        letter(at - 2) || (at >= 3 && hyphen(at - 2) && letter(at - 3));
    bool behind = letter(at + 1) &&
                  (letter(at + 2) || (hyphen(at + 2) && letter(at + 3)));
    return before && behind;
  }

  std::u32string text_;
  bool at_hyphens_;
};

std::string to_utf8(std::u32string_view text) {
  std::string out;
  for (char32_t c : text) {
    append_code_point(out, c);
  }
  return out;
}

bool is_all_space(std::u32string_view text) {
  return std::all_of(text.begin(), text.end(), is_space);
}

}  // namespace

std::vector<std::string> wrap_line(
    std::string_view line, size_t width, bool break_long, bool break_hyphens
) {
  count_work(line.size());
  Chunks chunks(line, break_hyphens);
  std::u32string_view text = chunks.text();
  std::vector<std::string> lines;
  size_t at = 0;
  size_t end = text.empty() ? 0 : chunks.end_of(0);  // of the chunk at `at`
  auto advance = [&](size_t to) {
    at = to;
    if (at == end && at < text.size()) {
      end = chunks.end_of(at);
    }
  };
  while (at < text.size()) {
    if (!lines.empty() && is_all_space(text.substr(at, end - at))) {
      advance(end);
    }
    size_t begin = at;
    size_t last = at;  // where the last chunk of the line starts
    while (at < text.size() && end - begin <= width) {
      last = at;
      advance(end);
    }
    if (at < text.size() && end - at > width) {
      size_t room = width - (at - begin);
      if (break_long) {
        std::u32string_view head = text.substr(at, room);
        size_t hyphen = break_hyphens ? head.rfind(U'-') : head.npos;
        if (hyphen != head.npos && hyphen > 0 &&
            head.substr(0, hyphen).find_first_not_of(U'-') != head.npos) {
          room = hyphen + 1;
        }
        last = at;
        advance(at + room);
      } else if (at == begin) {
        last = at;
        advance(end);
      }
    }
    size_t stop = is_all_space(text.substr(last, at - last)) ? last : at;
    if (begin < stop) {
      lines.push_back(to_utf8(text.substr(begin, stop - begin)));
    }
  }
  return lines;
}

namespace {

struct Reference {
  std::string_view name;
  uint16_t character;
};

// Source: HTML Standard, named character references. These work without a
// semicolon, too.
constexpr Reference kLatin[] = {
    {"AElig", 0xc6},  {"AMP", 0x26},    {"Aacute", 0xc1}, {"Acirc", 0xc2},
    {"Agrave", 0xc0}, {"Aring", 0xc5},  {"Atilde", 0xc3}, {"Auml", 0xc4},
    {"COPY", 0xa9},   {"Ccedil", 0xc7}, {"ETH", 0xd0},    {"Eacute", 0xc9},
    {"Ecirc", 0xca},  {"Egrave", 0xc8}, {"Euml", 0xcb},   {"GT", 0x3e},
    {"Iacute", 0xcd}, {"Icirc", 0xce},  {"Igrave", 0xcc}, {"Iuml", 0xcf},
    {"LT", 0x3c},     {"Ntilde", 0xd1}, {"Oacute", 0xd3}, {"Ocirc", 0xd4},
    {"Ograve", 0xd2}, {"Oslash", 0xd8}, {"Otilde", 0xd5}, {"Ouml", 0xd6},
    {"QUOT", 0x22},   {"REG", 0xae},    {"THORN", 0xde},  {"Uacute", 0xda},
    {"Ucirc", 0xdb},  {"Ugrave", 0xd9}, {"Uuml", 0xdc},   {"Yacute", 0xdd},
    {"aacute", 0xe1}, {"acirc", 0xe2},  {"acute", 0xb4},  {"aelig", 0xe6},
    {"agrave", 0xe0}, {"amp", 0x26},    {"aring", 0xe5},  {"atilde", 0xe3},
    {"auml", 0xe4},   {"brvbar", 0xa6}, {"ccedil", 0xe7}, {"cedil", 0xb8},
    {"cent", 0xa2},   {"copy", 0xa9},   {"curren", 0xa4}, {"deg", 0xb0},
    {"divide", 0xf7}, {"eacute", 0xe9}, {"ecirc", 0xea},  {"egrave", 0xe8},
    {"eth", 0xf0},    {"euml", 0xeb},   {"frac12", 0xbd}, {"frac14", 0xbc},
    {"frac34", 0xbe}, {"gt", 0x3e},     {"iacute", 0xed}, {"icirc", 0xee},
    {"iexcl", 0xa1},  {"igrave", 0xec}, {"iquest", 0xbf}, {"iuml", 0xef},
    {"laquo", 0xab},  {"lt", 0x3c},     {"macr", 0xaf},   {"micro", 0xb5},
    {"middot", 0xb7}, {"nbsp", 0xa0},   {"not", 0xac},    {"ntilde", 0xf1},
    {"oacute", 0xf3}, {"ocirc", 0xf4},  {"ograve", 0xf2}, {"ordf", 0xaa},
    {"ordm", 0xba},   {"oslash", 0xf8}, {"otilde", 0xf5}, {"ouml", 0xf6},
    {"para", 0xb6},   {"plusmn", 0xb1}, {"pound", 0xa3},  {"quot", 0x22},
    {"raquo", 0xbb},  {"reg", 0xae},    {"sect", 0xa7},   {"shy", 0xad},
    {"sup1", 0xb9},   {"sup2", 0xb2},   {"sup3", 0xb3},   {"szlig", 0xdf},
    {"thorn", 0xfe},  {"times", 0xd7},  {"uacute", 0xfa}, {"ucirc", 0xfb},
    {"ugrave", 0xf9}, {"uml", 0xa8},    {"uuml", 0xfc},   {"yacute", 0xfd},
    {"yen", 0xa5},    {"yuml", 0xff}};

constexpr Reference kCommon[] = {
    {"Dagger", 0x2021}, {"Delta", 0x394},   {"Hat", 0x5e},
    {"Omega", 0x3a9},   {"Prime", 0x2033},  {"Sigma", 0x3a3},
    {"alpha", 0x3b1},   {"apos", 0x27},     {"ast", 0x2a},
    {"bdquo", 0x201e},  {"beta", 0x3b2},    {"bsol", 0x5c},
    {"bull", 0x2022},   {"check", 0x2713},  {"colon", 0x3a},
    {"comma", 0x2c},    {"commat", 0x40},   {"dagger", 0x2020},
    {"darr", 0x2193},   {"delta", 0x3b4},   {"dollar", 0x24},
    {"emsp", 0x2003},   {"ensp", 0x2002},   {"equals", 0x3d},
    {"euro", 0x20ac},   {"excl", 0x21},     {"gamma", 0x3b3},
    {"ge", 0x2265},     {"grave", 0x60},    {"harr", 0x2194},
    {"hearts", 0x2665}, {"hellip", 0x2026}, {"infin", 0x221e},
    {"larr", 0x2190},   {"lbrace", 0x7b},   {"lbrack", 0x5b},
    {"ldquo", 0x201c},  {"le", 0x2264},     {"lowbar", 0x5f},
    {"lpar", 0x28},     {"lsaquo", 0x2039}, {"lsquo", 0x2018},
    {"mdash", 0x2014},  {"minus", 0x2212},  {"ndash", 0x2013},
    {"ne", 0x2260},     {"num", 0x23},      {"omega", 0x3c9},
    {"percnt", 0x25},   {"period", 0x2e},   {"permil", 0x2030},
    {"pi", 0x3c0},      {"plus", 0x2b},     {"prime", 0x2032},
    {"quest", 0x3f},    {"rarr", 0x2192},   {"rbrace", 0x7d},
    {"rbrack", 0x5d},   {"rdquo", 0x201d},  {"rpar", 0x29},
    {"rsaquo", 0x203a}, {"rsquo", 0x2019},  {"sbquo", 0x201a},
    {"semi", 0x3b},     {"sigma", 0x3c3},   {"sol", 0x2f},
    {"thinsp", 0x2009}, {"trade", 0x2122},  {"uarr", 0x2191},
    {"vert", 0x7c},     {"zwj", 0x200d},    {"zwnj", 0x200c}};

// What 0x80 to 0x9f stand for: the HTML Standard, numeric character reference
// end state.
constexpr char16_t kWindows[] = {
    0x20ac, 0x81,   0x201a, 0x192,  0x201e, 0x2026, 0x2020, 0x2021,
    0x2c6,  0x2030, 0x160,  0x2039, 0x152,  0x8d,   0x17d,  0x8f,
    0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
    0x2dc,  0x2122, 0x161,  0x203a, 0x153,  0x9d,   0x17e,  0x178};

template <size_t N>
const Reference* find(const Reference (&table)[N], std::string_view name) {
  for (const Reference& known : table) {
    if (known.name == name) {
      return &known;
    }
  }
  return nullptr;
}

// Control characters and what Unicode sets apart for no character.
bool is_no_character(uint64_t number) {
  bool control =
      (number < 0x20 && number != '\t' && number != '\n' && number != '\f') ||
      number == 0x7f;
  return control || (number >= 0xfdd0 && number <= 0xfdef) ||
         (number & 0xfffe) == 0xfffe;
}

void append_number(std::string& out, uint64_t number) {
  if (number == 0 || (number >= 0xd800 && number < 0xe000) ||
      number > 0x10ffff) {
    append_code_point(out, 0xfffd);
  } else if (number >= 0x80 && number < 0xa0) {
    append_code_point(out, kWindows[number - 0x80]);
  } else if (number == '\r') {
    out += '\r';
  } else if (!is_no_character(number)) {
    append_code_point(out, static_cast<char32_t>(number));
  }
}

// `&#...`: the end of the reference, or `at` if it is none.
size_t append_numeric(std::string& out, std::string_view text, size_t at) {
  size_t i = at + 2;
  bool hex = i < text.size() && (text[i] == 'x' || text[i] == 'X');
  i += hex;
  size_t digits = i;
  uint64_t number = 0;
  for (; i < text.size(); ++i) {
    char c = text[i];
    int digit = c >= '0' && c <= '9'          ? c - '0'
                : hex && c >= 'a' && c <= 'f' ? c - 'a' + 10
                : hex && c >= 'A' && c <= 'F' ? c - 'A' + 10
                                              : -1;
    if (digit < 0) {
      break;
    }
    number = std::min<uint64_t>(
        number * (hex ? 16 : 10) + static_cast<uint64_t>(digit), 0x110000
    );
  }
  if (i == digits) {
    return at;
  }
  append_number(out, number);
  return i < text.size() && text[i] == ';' ? i + 1 : i;
}

// `&name`: the end of the reference, or `at` if it is none.
size_t append_named(std::string& out, std::string_view text, size_t at) {
  constexpr size_t kLongest = 32;  // code points
  size_t end = at + 1;
  for (size_t i = 0; end < text.size() && i < kLongest; ++i) {
    if (std::string_view("\t\n\f <&#;").find(text[end]) !=
        std::string_view::npos) {
      break;
    }
    next_code_point(text, end);
  }
  std::string_view name = text.substr(at + 1, end - at - 1);
  bool closed = end < text.size() && text[end] == ';';
  if (closed) {
    const Reference* known = find(kLatin, name);
    known = known ? known : find(kCommon, name);
    if (known) {
      append_code_point(out, known->character);
      return end + 1;
    }
    bool plausible =
        !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                 (c >= '0' && c <= '9');
        });
    if (plausible) {
      fault(fmt::format(
          "striptags: the character reference &{}; is unknown here", name
      ));
    }
  }
  for (size_t length = name.size(); length > 1; --length) {
    if (const Reference* known = find(kLatin, name.substr(0, length))) {
      append_code_point(out, known->character);
      return at + 1 + length;
    }
  }
  return at;
}

}  // namespace

std::string unescape_html(std::string_view text) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    size_t mark = std::min(text.find('&', at), text.size());
    out += text.substr(at, mark - at);
    at = mark;
    if (at == text.size()) {
      break;
    }
    bool numeric = at + 1 < text.size() && text[at + 1] == '#';
    size_t end =
        numeric ? append_numeric(out, text, at) : append_named(out, text, at);
    if (end == at) {
      out += '&';
      ++end;
    }
    at = end;
  }
  return out;
}

std::string strip_tags(std::string_view text) {
  std::string plain;
  size_t at = 0;
  for (size_t open; (open = text.find('<', at)) != text.npos;) {
    bool comment = text.substr(open).starts_with("<!--");
    size_t close = comment ? text.find("-->", open + 4) : text.find('>', open);
    if (close == text.npos) {
      break;
    }
    plain += text.substr(at, open - at);
    at = close + (comment ? 3 : 1);
  }
  plain += text.substr(at);
  std::string joined;
  for (std::string_view word : split(plain, std::nullopt, -1)) {
    joined += joined.empty() ? "" : " ";
    joined += word;
  }
  return unescape_html(joined);
}

}  // namespace mlxcel::chat
