#pragma once

#include <cstddef>
#include <string_view>

namespace mlxcel::tokenizer {

/// U+2581, which stands for a space in many vocabularies.
inline constexpr std::string_view word_mark = "\xe2\x96\x81";

/// Calls take(word) for the parts of a text that begin with the mark, and for
/// what comes before the first. `may_cut(before)`: whether the text may be cut
/// between `before` and the mark behind it.
template <typename MayCut, typename Take>
void cut_at_marks(std::string_view text, MayCut may_cut, Take take) {
  size_t begin = 0;
  for (size_t at = text.find(word_mark, 1); at != std::string_view::npos;
       at = text.find(word_mark, at + word_mark.size())) {
    if (may_cut(text.substr(0, at))) {
      take(text.substr(begin, at - begin));
      begin = at;
    }
  }
  take(text.substr(begin));
}

}  // namespace mlxcel::tokenizer
