#pragma once

#include <cstdint>
#include <vector>

#include "mlxcel/tokenizer/models/hash.h"

namespace mlxcel::tokenizer {

/// The merges of a BPE model: which two tokens become which one, and how
/// early.
class MergeTable {
 public:
  static constexpr uint32_t none = ~0u;

  struct Merge {
    int32_t left;
    int32_t right;
    int32_t merged;
  };

  MergeTable() = default;
  /// In order of rank. Of equal pairs the last counts. `by_result`: merges
  /// in a row that make the same token have one rank.
  explicit MergeTable(const std::vector<Merge>& merges, bool by_result = false);

  /// The rank of a pair, or none.
  uint32_t rank(int32_t left, int32_t right) const {
    auto a = static_cast<uint32_t>(left);
    auto b = static_cast<uint32_t>(right);
    for (uint64_t at = hash_pair(a, b) & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.rank == none || (slot.left == a && slot.right == b)) {
        return slot.rank;
      }
    }
  }
  int32_t merged(uint32_t rank) const {
    return merged_[rank];
  }

 private:
  struct Slot {
    uint32_t left = 0;
    uint32_t right = 0;
    uint32_t rank = none;
  };

  std::vector<Slot> slots_{1};  // open addressing, a power of two
  uint64_t mask_ = 0;
  std::vector<int32_t> merged_;
};

}  // namespace mlxcel::tokenizer
