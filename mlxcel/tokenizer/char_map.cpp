#include "mlxcel/tokenizer/char_map.h"

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

CharMap::Match CharMap::find(std::string_view text) const {
  Match match{0, {}};
  if (units_.empty()) {
    return match;
  }
  size_t node = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (node >= units_.size() || label(units_[node]) != byte) {
      break;
    }
    uint32_t unit = units_[node];
    node ^= offset(unit);
    if (!has_value(unit) || node >= units_.size()) {
      continue;
    }
    size_t at = value(units_[node]);
    bool whole = i + 1 == text.size() || !continues(text[i + 1]);
    if (whole && at < replacements_.size() && !continues(replacements_[at])) {
      match = {i + 1, replacements_.c_str() + at};
    }
  }
  return match;
}

}  // namespace mlxcel::tokenizer
