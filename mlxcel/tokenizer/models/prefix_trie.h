#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "mlxcel/tokenizer/models/hash.h"

namespace mlxcel::tokenizer {

/// Finds which of many strings a text begins with.
class PrefixTrie {
 public:
  static constexpr uint32_t root = 0;
  static constexpr uint32_t none = ~0u;

  PrefixTrie();
  /// Throws Error(unsupported) beyond 2^24 nodes. Of equal strings the last
  /// counts.
  void add(std::string_view text, int32_t value);
  bool empty() const {
    return values_.size() == 1;
  }

  /// The node behind `node`, or none.
  uint32_t child(uint32_t node, unsigned char byte) const {
    for (uint64_t at = hash_pair(node, byte) & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.child == none || (slot.node == node && slot.byte == byte)) {
        return slot.child;
      }
    }
  }
  /// The value of the string that ends at a node, or -1.
  int32_t value(uint32_t node) const {
    return values_[node];
  }
  /// The length of the longest string that `text` begins with, or 0.
  size_t longest(std::string_view text) const;

 private:
  struct Slot {
    uint32_t node = 0;
    uint32_t byte = 0;
    uint32_t child = none;
  };

  void insert(const Slot& slot);
  void grow();

  std::vector<Slot> slots_;  // open addressing, a power of two
  uint64_t mask_;
  std::vector<int32_t> values_;  // by node
};

}  // namespace mlxcel::tokenizer
