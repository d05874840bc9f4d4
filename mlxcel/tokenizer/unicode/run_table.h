#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mlxcel::unicode {

/// A small number for each code point, from runs of equal numbers.
class RunTable {
 public:
  struct Run {
    uint32_t first;
    uint16_t value;
  };
  /// Runs in order; the first begins at 0, each lasts to the next.
  explicit RunTable(std::span<const Run> runs);

  uint16_t operator[](char32_t c) const {
    return cells_[blocks_[c >> 8] + (c & 0xff)];
  }

 private:
  std::vector<uint32_t> blocks_;
  std::vector<uint16_t> cells_;
};

}  // namespace mlxcel::unicode
