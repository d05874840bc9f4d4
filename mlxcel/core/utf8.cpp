#include "mlxcel/core/utf8.h"

#include <cstdint>

#include "mlxcel/core/numbers.h"

namespace mlxcel {

namespace {

// Length of the well-formed character at the start, 0 if there is none.
size_t character_length(std::string_view text) {
  auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0};
  };
  auto continues = [&](size_t i, uint8_t low, uint8_t high) {
    return byte(i) >= low && byte(i) <= high;
  };
  uint8_t lead = byte(0);
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xc2 && lead <= 0xdf) {
    return continues(1, 0x80, 0xbf) ? 2 : 0;
  }
  if (lead >= 0xe0 && lead <= 0xef) {
    uint8_t low = lead == 0xe0 ? 0xa0 : 0x80;
    uint8_t high = lead == 0xed ? 0x9f : 0xbf;
    return continues(1, low, high) && continues(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    uint8_t low = lead == 0xf0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xf4 ? 0x8f : 0xbf;
    return continues(1, low, high) && continues(2, 0x80, 0xbf) &&
                   continues(3, 0x80, 0xbf)
               ? 4
               : 0;
  }
  return 0;
}

}  // namespace

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    constexpr uint64_t kHighBits = 0x8080808080808080u;
    while (at + 8 <= text.size() &&
           (load_le<uint64_t>(text.data() + at) & kHighBits) == 0) {
      at += 8;
    }
    if (at == text.size()) {
      break;
    }
    size_t length = character_length(text.substr(at));
    if (length == 0) {
      return at;
    }
    at += length;
  }
  return std::nullopt;
}

}  // namespace mlxcel
