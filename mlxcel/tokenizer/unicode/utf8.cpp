#include "mlxcel/tokenizer/unicode/utf8.h"

#include <simdjson.h>

namespace mlxcel::utf8 {

namespace {

struct Sequence {
  unsigned bytes;  // valid, or the maximal subpart that is not
  enum { valid, invalid, cut } state;
};

/// Classifies the sequence at the start of non-empty `s` (Table 3-7).
Sequence classify(std::string_view s) {
  auto byte = [&s](size_t i) { return static_cast<unsigned char>(s[i]); };
  unsigned char lead = byte(0);
  if (lead < 0x80) {
    return {1, Sequence::valid};
  }
  if (lead < 0xc2 || lead > 0xf4) {
    return {1, Sequence::invalid};
  }
  unsigned size = length(lead);
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (lead == 0xe0) {
    low = 0xa0;
  } else if (lead == 0xed) {
    high = 0x9f;
  } else if (lead == 0xf0) {
    low = 0x90;
  } else if (lead == 0xf4) {
    high = 0x8f;
  }
  for (unsigned i = 1; i < size; ++i) {
    if (i == s.size()) {
      return {i, Sequence::cut};
    }
    if (byte(i) < low || byte(i) > high) {
      return {i, Sequence::invalid};
    }
    low = 0x80;
    high = 0xbf;
  }
  return {size, Sequence::valid};
}

}  // namespace

size_t last_begin(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) {
    --at;
  }
  return at;
}

void append(std::string& out, char32_t c) {
  auto put = [&out](char32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6);
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3f));
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  }
}

size_t count(std::string_view text) {
  size_t characters = 0;
  for (char c : text) {
    characters += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
  }
  return characters;
}

bool valid(std::string_view text) {
  return simdjson::validate_utf8(text.data(), text.size());
}

size_t certain_prefix(std::string_view bytes) {
  size_t from = bytes.size() > 3 ? bytes.size() - 3 : 0;
  for (size_t at = from; at < bytes.size(); ++at) {
    if (static_cast<unsigned char>(bytes[at]) < 0xc0) {
      continue;
    }
    Sequence sequence = classify(bytes.substr(at));
    if (sequence.state == Sequence::cut) {
      return at;
    }
  }
  return bytes.size();
}

void append_lossy(std::string& out, std::string_view bytes) {
  if (valid(bytes)) {
    out += bytes;
    return;
  }
  while (!bytes.empty()) {
    Sequence sequence = classify(bytes);
    if (sequence.state == Sequence::valid) {
      out += bytes.substr(0, sequence.bytes);
    } else {
      out += "\xef\xbf\xbd";
    }
    bytes.remove_prefix(sequence.bytes);
  }
}

bool single(std::string_view text, char32_t& c) {
  if (text.empty() ||
      text.size() != length(static_cast<unsigned char>(text[0]))) {
    return false;
  }
  const char* p = text.data();
  c = next(p);
  return true;
}

}  // namespace mlxcel::utf8
