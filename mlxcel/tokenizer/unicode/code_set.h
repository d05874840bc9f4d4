#pragma once

#include <cstdint>
#include <vector>

namespace mlxcel::tokenizer {

/// A set of code points as sorted ranges that neither touch nor overlap.
class CodeSet {
 public:
  struct Range {
    uint32_t first;
    uint32_t last;
    bool operator==(const Range&) const = default;
  };
  static constexpr uint32_t max_code_point = 0x10ffff;

  CodeSet() = default;
  static CodeSet of(uint32_t first, uint32_t last);
  /// Characters with any attribute bit of `any` (unicode.h).
  static CodeSet with_attributes(uint32_t any);
  /// Characters of the general categories whose bits are set in `mask`.
  static CodeSet with_categories(uint32_t mask);
  static CodeSet with_script(unsigned number);

  void add(uint32_t first, uint32_t last);
  void add(const CodeSet& other);
  CodeSet complement() const;
  CodeSet intersection(const CodeSet& other) const;

  bool contains(uint32_t c) const;
  bool empty() const {
    return ranges_.empty();
  }
  const std::vector<Range>& ranges() const {
    return ranges_;
  }
  bool operator==(const CodeSet&) const = default;

 private:
  std::vector<Range> ranges_;
};

}  // namespace mlxcel::tokenizer
