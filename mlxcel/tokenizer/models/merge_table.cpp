#include "mlxcel/tokenizer/models/merge_table.h"

#include <bit>

namespace mlxcel::tokenizer {

MergeTable::MergeTable(const std::vector<Merge>& merges, bool by_result) {
  slots_.assign(std::bit_ceil(merges.size() * 3 / 2 + 1), Slot{});
  mask_ = slots_.size() - 1;
  merged_.reserve(merges.size());
  uint32_t rank = 0;
  for (const Merge& merge : merges) {
    auto left = static_cast<uint32_t>(merge.left);
    auto right = static_cast<uint32_t>(merge.right);
    uint64_t at = hash_pair(left, right) & mask_;
    while (slots_[at].rank != none &&
           (slots_[at].left != left || slots_[at].right != right)) {
      at = (at + 1) & mask_;
    }
    bool same = by_result && !merged_.empty() && merged_.back() == merge.merged;
    rank = same ? rank : static_cast<uint32_t>(merged_.size());
    slots_[at] = {left, right, rank};
    merged_.push_back(merge.merged);
  }
}

}  // namespace mlxcel::tokenizer
