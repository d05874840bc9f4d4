#include "mlxcel/hub/download/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "mlxcel/core/error.h"
#include "mlxcel/core/text.h"
#include "mlxcel/core/utf8.h"

namespace mlxcel::hub {

namespace {

constexpr size_t kLongestSegment = 255;
constexpr std::string_view kWeights = ".safetensors";
// Files of a tokenizer that have no extension.
constexpr std::string_view kBareNames[] = {"vocab", "merges", "tokenizer"};
constexpr std::string_view kDocuments[] = {
    "readme", "license", "licence", "notice", "usage"};

std::vector<std::string_view> segments(std::string_view path) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t slash = path.find('/');
    parts.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) {
      return parts;
    }
    path.remove_prefix(slash + 1);
  }
}

bool is_weights(std::string_view path) {
  return path.ends_with(kWeights);
}

// A second copy of the weights, in the vendor's own layout.
bool is_consolidated(std::string_view path) {
  return path.starts_with("consolidated") && is_weights(path);
}

bool is_vocabulary_text(std::string_view name) {
  return name.starts_with("vocab") || name == "merges.txt" ||
         name.find("token") != std::string_view::npos;
}

// The character set at `pattern[at]`, which is "[": whether `c` is in it, and
// the offset behind it; npos if it doesn't end.
size_t match_set(std::string_view pattern, size_t at, char c, bool& inside) {
  size_t i = at + 1;
  bool inverted = i < pattern.size() && pattern[i] == '!';
  i += inverted ? 1 : 0;
  bool found = false;
  for (bool first = true; i < pattern.size(); first = false) {
    if (pattern[i] == ']' && !first) {
      inside = found != inverted;
      return i + 1;
    }
    char from = pattern[i];
    char to = from;
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' &&
        pattern[i + 2] != ']') {
      to = pattern[i + 2];
      i += 2;
    }
    found = found || (from <= c && c <= to);
    i += 1;
  }
  return std::string_view::npos;
}

// The offset in the pattern behind what matches `c`, or npos.
size_t match_one(std::string_view pattern, size_t at, char c) {
  if (at >= pattern.size()) {
    return std::string_view::npos;
  }
  if (pattern[at] == '[') {
    bool inside = false;
    size_t next = match_set(pattern, at, c, inside);
    if (next != std::string_view::npos) {
      return inside ? next : std::string_view::npos;
    }
  }
  return pattern[at] == '?' || pattern[at] == c ? at + 1
                                                : std::string_view::npos;
}

void check_conflicts(const std::vector<std::string>& paths) {
  std::map<std::string, std::string> folded;
  for (const std::string& path : paths) {
    auto [other, is_new] = folded.emplace(ascii_lower(path), path);
    if (!is_new) {
      fail(
          ErrorCode::invalid_input,
          fmt::format(
              "[download] {} and {}: two files of one name",
              quote(other->second),
              quote(path)
          )
      );
    }
  }
  for (const auto& [key, path] : folded) {
    for (size_t at = key.find('/'); at != std::string::npos;
         at = key.find('/', at + 1)) {
      auto file = folded.find(key.substr(0, at));
      if (file != folded.end()) {
        fail(
            ErrorCode::invalid_input,
            fmt::format(
                "[download] {}: listed as a file, and as the directory of {}",
                quote(file->second),
                quote(path)
            )
        );
      }
    }
  }
}

}  // namespace

bool is_safe_path(std::string_view path) {
  bool plain = std::none_of(path.begin(), path.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == 0x7f || c == '\\';
  });
  if (!plain || find_invalid_utf8(path)) {
    return false;
  }
  for (std::string_view part : segments(path)) {
    if (part.empty() || part == "." || part == ".." ||
        part.size() > kLongestSegment) {
      return false;
    }
  }
  return true;
}

bool is_model_file(std::string_view path) {
  std::vector<std::string_view> parts = segments(path);
  for (std::string_view part : parts) {
    if (part.starts_with('.')) {
      return false;
    }
  }
  std::string name = ascii_lower(parts.back());
  for (std::string_view document : kDocuments) {
    if (name.starts_with(document)) {
      return false;
    }
  }
  if (name.ends_with(".index.json")) {
    return name.ends_with(".safetensors.index.json");
  }
  for (std::string_view ending :
       {kWeights,
        std::string_view(".json"),
        std::string_view(".tiktoken"),
        std::string_view(".jinja"),
        std::string_view(".model")}) {
    if (name.ends_with(ending)) {
      return true;
    }
  }
  if (name.ends_with(".txt") || name.ends_with(".jsonl") ||
      name.ends_with(".bpe")) {
    return is_vocabulary_text(name);
  }
  return std::find(std::begin(kBareNames), std::end(kBareNames), name) !=
         std::end(kBareNames);
}

// A star that fails to match takes one character more; only the last one can,
// so that the time is bounded by the product of the lengths.
bool glob_match(std::string_view pattern, std::string_view text) {
  std::string all_below;
  if (pattern.ends_with('/')) {
    all_below = std::string(pattern) + "*";
    pattern = all_below;
  }
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;
  size_t taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
      continue;
    }
    size_t next = match_one(pattern, p, text[t]);
    if (next != std::string_view::npos) {
      p = next;
      t += 1;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::vector<std::string> select_files(
    const std::vector<std::string>& paths,
    const std::vector<std::string>& globs,
    std::vector<std::string>& unsafe
) {
  std::vector<std::string> chosen;
  for (const std::string& path : paths) {
    bool wanted =
        globs.empty() ||
        std::any_of(globs.begin(), globs.end(), [&](const auto& glob) {
          return glob_match(glob, path);
        });
    if (!wanted) {
      continue;
    }
    if (!is_safe_path(path)) {
      unsafe.push_back(path);
    } else if (is_model_file(path)) {
      chosen.push_back(path);
    }
  }
  bool others = std::any_of(chosen.begin(), chosen.end(), [](const auto& path) {
    return is_weights(path) && path.find('/') == std::string::npos &&
           !is_consolidated(path);
  });
  if (others) {
    std::erase_if(chosen, [](const auto& path) {
      return is_consolidated(path);
    });
  }
  check_conflicts(chosen);
  std::sort(chosen.begin(), chosen.end(), [](const auto& a, const auto& b) {
    return std::pair(is_weights(a), std::string_view(a)) <
           std::pair(is_weights(b), std::string_view(b));
  });
  return chosen;
}

}  // namespace mlxcel::hub
