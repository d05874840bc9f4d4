#include "mlxcel/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

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

std::optional<std::string_view> find_repeated(
    std::span<const std::string_view> texts
) {
  struct Hashed {
    size_t hash;
    std::string_view text;
  };
  std::vector<Hashed> sorted;
  sorted.reserve(texts.size());
  for (std::string_view text : texts) {
    sorted.push_back({std::hash<std::string_view>()(text), text});
  }
  auto less = [](const Hashed& a, const Hashed& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.text < b.text;
  };
  std::sort(sorted.begin(), sorted.end(), less);
  auto same = [](const Hashed& a, const Hashed& b) {
    return a.hash == b.hash && a.text == b.text;
  };
  auto twin = std::adjacent_find(sorted.begin(), sorted.end(), same);
  return twin == sorted.end() ? std::nullopt : std::optional(twin->text);
}

}  // namespace mlxcel
