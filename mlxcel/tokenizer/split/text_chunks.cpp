#include "mlxcel/tokenizer/split/text_chunks.h"

#include "mlxcel/tokenizer/unicode/unicode.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

/// Python's str.isspace: also the four separators of ASCII.
bool is_space(char32_t c) {
  return (c >= 0x1c && c <= 0x1f) ||
         (unicode::attributes()[c] & unicode::space) != 0;
}

}  // namespace

std::vector<std::string_view> cut_text(
    std::string_view text, const ChunkLimits& limits
) {
  std::vector<std::string_view> chunks;
  const char* begin = text.data();
  const char* end = begin + text.size();
  size_t characters = 0;
  size_t run = 0;
  bool in_spaces = false;
  for (const char* p = begin; p != end;) {
    const char* at = p;
    bool space = is_space(utf8::next(p));
    bool same = run > 0 && space == in_spaces;
    run = same ? run + 1 : 1;
    in_spaces = space;
    if (characters == limits.characters || run > limits.run) {
      chunks.emplace_back(begin, static_cast<size_t>(at - begin));
      begin = at;
      characters = characters == limits.characters ? 0 : characters;
      run = 1;
    }
    ++characters;
  }
  if (begin != end) {
    chunks.emplace_back(begin, static_cast<size_t>(end - begin));
  }
  return chunks;
}

}  // namespace mlxcel::tokenizer
