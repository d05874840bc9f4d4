#include "mlxcel/tokenizer/normalize/char_map.h"

#include <fmt/format.h>

#include <cstring>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/utf8.h"

namespace mlxcel::tokenizer {

namespace {

// A unit of the double array (Darts-clone, include/darts.h, DoubleArrayUnit).

uint32_t label(uint32_t unit) {
  return unit & (1u << 31 | 0xff);
}
bool has_value(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
uint32_t value(uint32_t unit) {
  return unit & ~(1u << 31);
}
uint32_t offset(uint32_t unit) {
  return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

}  // namespace

CharMap::CharMap(std::string_view blob, const std::string& file) {
  if (blob.empty()) {
    return;
  }
  auto reject = [&](const char* reason) {
    fail(
        ErrorCode::invalid_input,
        fmt::format("[{}] precompiled_charsmap: {}", file, reason)
    );
  };
  if (blob.size() < sizeof(uint32_t)) {
    reject("too short");
  }
  size_t size = load_le<uint32_t>(blob.data());
  blob.remove_prefix(sizeof(uint32_t));
  if (size >= blob.size() || size < 1024 || size % 1024 != 0) {
    reject("the size of its array is wrong");
  }
  units_.resize(size / sizeof(uint32_t));
  std::memcpy(units_.data(), blob.data(), size);
  replacements_ = blob.substr(size);
  if (replacements_.back() != '\0' || find_invalid_utf8(replacements_)) {
    reject("its replacements are no texts ended by NUL");
  }
}

/// Gives the rules for what `text` begins with, from the shortest on, until
/// `take` returns false.
template <typename Take>
void CharMap::search(std::string_view text, Take take) const {
  if (units_.empty()) {
    return;
  }
  size_t node = offset(units_[0]);
  for (size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (node >= units_.size() || label(units_[node]) != byte) {
      return;
    }
    uint32_t unit = units_[node];
    node ^= offset(unit);
    if (!has_value(unit) || node >= units_.size()) {
      continue;
    }
    size_t at = value(units_[node]);
    bool known = at < replacements_.size() && !continues(replacements_[at]);
    if (known && !take(Match{i + 1, replacements_.c_str() + at})) {
      return;
    }
  }
}

CharMap::Match CharMap::find(std::string_view text) const {
  Match longest{0, {}};
  search(text, [&](const Match& match) {
    bool whole = match.length == text.size() || !continues(text[match.length]);
    longest = whole ? match : longest;
    return true;
  });
  return longest;
}

CharMap::Match CharMap::find_shortest(std::string_view text) const {
  Match shortest{0, {}};
  search(text, [&](const Match& match) {
    shortest = match;
    return false;
  });
  return shortest;
}

}  // namespace mlxcel::tokenizer
