#include "mlxcel/core/error.h"

#include <fmt/format.h>

namespace mlxcel {

void fail(ErrorCode code, std::string message) {
  throw Error(code, std::move(message));
}

std::string quote(std::string_view text, size_t limit) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size() && i < limit; ++i) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[i];
    } else if (c < 0x20 || c >= 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += text[i];
    }
  }
  out += text.size() > limit ? "\"..." : "\"";
  return out;
}

}  // namespace mlxcel
