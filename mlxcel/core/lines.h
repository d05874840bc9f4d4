#pragma once

#include <cstddef>
#include <string_view>

namespace mlxcel {

/// The lines of a text that outlives it, without their line feeds. A line feed
/// at the end of the text begins no further line.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : rest_(text) {}

  /// False behind the last line.
  bool next(std::string_view& line) {
    if (rest_.empty()) {
      return false;
    }
    size_t end = rest_.find('\n');
    line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    ++number_;
    return true;
  }
  /// Of the line that came last, from 1.
  size_t number() const {
    return number_;
  }

 private:
  std::string_view rest_;
  size_t number_ = 0;
};

}  // namespace mlxcel
