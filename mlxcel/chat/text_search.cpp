#include <algorithm>

#include "mlxcel/chat/budget.h"
#include "mlxcel/chat/text.h"

namespace mlxcel::chat {

namespace {

// Shorter needles are searched the plain way: at worst that many comparisons
// per character.
constexpr size_t kPlainNeedle = 32;

bool is_line_end(char32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 ||
         c == 0x2028 || c == 0x2029;
}

std::u32string sorted_code_points(std::string_view text) {
  std::u32string all;
  for (size_t i = 0; i < text.size();) {
    all += next_code_point(text, i);
  }
  std::sort(all.begin(), all.end());
  return all;
}

// Knuth, Morris and Pratt's search over sequences given by an accessor, so
// that it runs from either end. Returns the index behind the first match.
template <typename Text, typename Needle>
size_t search(Text text, size_t text_size, Needle needle, size_t needle_size) {
  std::vector<uint32_t> border(needle_size, 0);
  for (size_t i = 1, k = 0; i < needle_size; ++i) {
    while (k > 0 && needle(i) != needle(k)) {
      k = border[k - 1];
    }
    k += needle(i) == needle(k);
    border[i] = static_cast<uint32_t>(k);
  }
  for (size_t i = 0, k = 0; i < text_size; ++i) {
    while (k > 0 && text(i) != needle(k)) {
      k = border[k - 1];
    }
    k += text(i) == needle(k);
    if (k == needle_size) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

std::vector<std::string_view> split_at_spaces(
    std::string_view text, int64_t limit
) {
  std::vector<std::string_view> parts;
  text = strip(text, Side::left);
  while (!text.empty()) {
    size_t end = 0;
    if (limit >= 0 && static_cast<int64_t>(parts.size()) == limit) {
      parts.push_back(text);
      break;
    }
    while (end < text.size()) {
      size_t next = end;
      if (is_space(next_code_point(text, next))) {
        break;
      }
      end = next;
    }
    parts.push_back(text.substr(0, end));
    text = strip(text.substr(end), Side::left);
  }
  return parts;
}

std::vector<std::string_view> split_right_at_spaces(
    std::string_view text, int64_t limit
) {
  std::vector<std::string_view> parts;
  text = strip(text, Side::right);
  while (!text.empty()) {
    if (limit >= 0 && static_cast<int64_t>(parts.size()) == limit) {
      parts.push_back(text);
      break;
    }
    size_t begin = text.size();
    while (begin > 0) {
      size_t previous = previous_position(text, begin);
      size_t end = previous;
      if (is_space(next_code_point(text, end))) {
        break;
      }
      begin = previous;
    }
    parts.push_back(text.substr(begin));
    text = strip(text.substr(0, begin), Side::right);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

}  // namespace

size_t find_text(std::string_view text, std::string_view needle, size_t from) {
  constexpr size_t kAbsent = std::string_view::npos;
  if (from > text.size() || needle.size() > text.size() - from) {
    return kAbsent;
  }
  if (needle.size() <= kPlainNeedle) {
    return text.find(needle, from);
  }
  size_t end = search(
      [&](size_t i) { return text[from + i]; },
      text.size() - from,
      [&](size_t i) { return needle[i]; },
      needle.size()
  );
  return end == kAbsent ? kAbsent : from + end - needle.size();
}

size_t find_last_text(std::string_view text, std::string_view needle) {
  constexpr size_t kAbsent = std::string_view::npos;
  if (needle.size() > text.size()) {
    return kAbsent;
  }
  if (needle.size() <= kPlainNeedle) {
    return text.rfind(needle);
  }
  size_t end = search(
      [&](size_t i) { return text[text.size() - 1 - i]; },
      text.size(),
      [&](size_t i) { return needle[needle.size() - 1 - i]; },
      needle.size()
  );
  return end == kAbsent ? kAbsent : text.size() - end;
}

std::string_view strip(
    std::string_view text, Side side, std::optional<std::string_view> chars
) {
  std::u32string set = chars ? sorted_code_points(*chars) : std::u32string();
  auto dropped = [&](size_t position) {
    char32_t c = next_code_point(text, position);
    return chars ? std::binary_search(set.begin(), set.end(), c) : is_space(c);
  };
  size_t begin = 0;
  size_t end = text.size();
  while (side != Side::right && begin < end) {
    size_t next = begin;
    next_code_point(text, next);
    if (!dropped(begin)) {
      break;
    }
    begin = next;
  }
  while (side != Side::left && end > begin) {
    size_t previous = previous_position(text, end);
    if (!dropped(previous)) {
      break;
    }
    end = previous;
  }
  return text.substr(begin, end - begin);
}

std::vector<std::string_view> split(
    std::string_view text,
    std::optional<std::string_view> separator,
    int64_t limit
) {
  if (!separator) {
    return split_at_spaces(text, limit);
  }
  std::vector<std::string_view> parts;
  size_t begin = 0;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    size_t end = find_text(text, *separator, begin);
    if (end == std::string_view::npos) {
      break;
    }
    parts.push_back(text.substr(begin, end - begin));
    begin = end + separator->size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::vector<std::string_view> split_right(
    std::string_view text,
    std::optional<std::string_view> separator,
    int64_t limit
) {
  if (!separator) {
    return split_right_at_spaces(text, limit);
  }
  std::vector<std::string_view> parts;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    size_t begin = find_last_text(text, *separator);
    if (begin == std::string_view::npos) {
      break;
    }
    parts.push_back(text.substr(begin + separator->size()));
    text = text.substr(0, begin);
  }
  parts.push_back(text);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    size_t next = begin;
    while (next < text.size()) {
      char32_t c = next_code_point(text, next);
      if (is_line_end(c)) {
        next += c == '\r' && next < text.size() && text[next] == '\n';
        break;
      }
      end = next;
    }
    lines.push_back(text.substr(begin, (keep ? next : end) - begin));
    begin = next;
  }
  return lines;
}

std::string replace(
    std::string_view text,
    std::string_view old,
    std::string_view by,
    int64_t limit
) {
  std::string out;
  out.reserve(text.size());
  size_t begin = 0;
  if (old.empty()) {
    // Between all characters and at both ends.
    for (; begin <= text.size() && limit != 0; --limit) {
      out += by;
      check_text_size(out.size());
      if (begin == text.size()) {
        return out;
      }
      size_t next = begin;
      next_code_point(text, next);
      out += text.substr(begin, next - begin);
      begin = next;
    }
  }
  for (; limit != 0 && !old.empty(); --limit) {
    size_t end = find_text(text, old, begin);
    if (end == std::string_view::npos) {
      break;
    }
    out += text.substr(begin, end - begin);
    out += by;
    check_text_size(out.size());
    begin = end + old.size();
  }
  out += text.substr(begin);
  return out;
}

size_t count_text(std::string_view text, std::string_view needle) {
  if (needle.empty()) {
    return count_code_points(text) + 1;
  }
  size_t count = 0;
  for (size_t i = 0;; i += needle.size(), ++count) {
    i = find_text(text, needle, i);
    if (i == std::string_view::npos) {
      return count;
    }
  }
}

}  // namespace mlxcel::chat
