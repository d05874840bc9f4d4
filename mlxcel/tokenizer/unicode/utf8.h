#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mlxcel::utf8 {

/// Bytes of the sequence that `lead` starts; 1 for anything else.
inline unsigned length(unsigned char lead) {
  return lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/// The character at `p` of valid UTF-8, advancing `p` past it.
inline char32_t next(const char*& p) {
  auto byte = [&p](int i) { return static_cast<unsigned char>(p[i]); };
  char32_t c = byte(0);
  if (c < 0x80) {
    p += 1;
  } else if (c < 0xe0) {
    c = (c & 0x1f) << 6 | (byte(1) & 0x3f);
    p += 2;
  } else if (c < 0xf0) {
    c = (c & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    p += 3;
  } else {
    c = (c & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 |
        (byte(3) & 0x3f);
    p += 4;
  }
  return c;
}

/// Where the last character of non-empty valid UTF-8 begins.
size_t last_begin(std::string_view text);

void append(std::string& out, char32_t c);

/// Number of characters.
size_t count(std::string_view text);

bool valid(std::string_view text);

/// How many of the leading bytes are certain: all of them, or all but a
/// sequence at the end that further bytes could still complete.
size_t certain_prefix(std::string_view bytes);

/// Appends with each maximal invalid sequence replaced by U+FFFD (the
/// Unicode Standard 3.9, "U+FFFD substitution of maximal subparts").
void append_lossy(std::string& out, std::string_view bytes);

/// The single character of `text`; empty or longer text gives no character.
bool single(std::string_view text, char32_t& c);

}  // namespace mlxcel::utf8
