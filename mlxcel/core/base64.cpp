#include "mlxcel/core/base64.h"

#include <cstdint>

namespace mlxcel {

namespace {

/// The value of a character, or -1.
int digit(char c) {
  return c >= 'A' && c <= 'Z'   ? c - 'A'
         : c >= 'a' && c <= 'z' ? c - 'a' + 26
         : c >= '0' && c <= '9' ? c - '0' + 52
         : c == '+'             ? 62
         : c == '/'             ? 63
                                : -1;
}

}  // namespace

std::string encode_base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    std::string_view group = bytes.substr(i, 3);
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j) {
      uint32_t byte =
          j < group.size() ? static_cast<unsigned char>(group[j]) : 0;
      bits = bits << 8 | byte;
    }
    for (size_t j = 0; j < 4; ++j) {
      text += j <= group.size() ? digits[bits >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

std::optional<std::string> decode_base64(
    std::string_view text, StrayBits stray
) {
  if (text.size() % 4 != 0) {
    return std::nullopt;
  }
  size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  text.remove_suffix(padding);
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    int value = digit(c);
    if (value < 0) {
      return std::nullopt;
    }
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count);
      bits &= (1u << count) - 1;
    }
  }
  bool fine = bits == 0 || stray == StrayBits::ignored;
  return fine ? std::optional(bytes) : std::nullopt;
}

}  // namespace mlxcel
