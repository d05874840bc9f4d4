#include "mlxcel/core/text.h"

#include <fmt/format.h>

namespace mlxcel {

std::string ascii_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    }
  }
  return lower;
}

std::string list_names(const std::vector<std::string>& names, size_t most) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < most; ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > most) {
    text += fmt::format(" and {} more", names.size() - most);
  }
  return text;
}

}  // namespace mlxcel
