#include "mlxcel/tokenizer/split/byte_level.h"

#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

constexpr unsigned alphabet_end = 0x144;

struct Alphabet {
  std::array<uint16_t, 256> characters{};
  std::array<int16_t, alphabet_end> bytes{};  // -1: none
  std::array<std::array<char, 2>, 256> spelling{};
  std::array<uint8_t, 256> sizes{};

  Alphabet() {
    bytes.fill(-1);
    uint16_t next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      bool printable =
          (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || (b >= 0xae);
      characters[b] = printable ? static_cast<uint16_t>(b) : next++;
      bytes[characters[b]] = static_cast<int16_t>(b);
      std::string text;
      utf8::append(text, characters[b]);
      sizes[b] = static_cast<uint8_t>(text.size());
      text.copy(spelling[b].data(), 2);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet table;
  return table;
}

}  // namespace

char32_t byte_character(unsigned char byte) {
  return alphabet().characters[byte];
}

void append_byte_level(std::string& out, std::string_view bytes) {
  const Alphabet& table = alphabet();
  for (char c : bytes) {
    auto byte = static_cast<unsigned char>(c);
    out.append(table.spelling[byte].data(), table.sizes[byte]);
  }
}

void append_from_byte_level(std::string& out, std::string_view token) {
  const Alphabet& table = alphabet();
  size_t start = out.size();
  const char* p = token.data();
  const char* end = p + token.size();
  while (p != end) {
    char32_t c = utf8::next(p);
    int byte = c < alphabet_end ? table.bytes[c] : -1;
    if (byte < 0) {
      out.resize(start);
      out += token;
      return;
    }
    out += static_cast<char>(byte);
  }
}

}  // namespace mlxcel::tokenizer
