#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mlxcel/backend/state.h"

namespace mlxcel::cache {

/// Hands out the blocks of a pool. Those released last go out first: their
/// memory is resident already.
class BlockAllocator {
 public:
  /// Blocks 0 .. blocks - 1, all free.
  explicit BlockAllocator(int64_t blocks);

  int64_t capacity() const {
    return capacity_;
  }
  int64_t available() const {
    return static_cast<int64_t>(free_.size());
  }

 private:
  friend class BlockTable;
  int32_t take();
  void give_back(int32_t block) noexcept;

  int64_t capacity_;
  std::vector<int32_t> free_;
};

/// The blocks of one sequence, in the order of its tokens. Gives them back
/// when it dies; the allocator must outlive it.
class BlockTable {
 public:
  explicit BlockTable(BlockAllocator& allocator) : allocator_(allocator) {}
  ~BlockTable();
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;

  /// Room for `tokens` tokens. Throws Error(out_of_memory) and changes nothing
  /// if the pool has too few free blocks.
  void reserve(int64_t tokens);
  /// Gives back the blocks that `tokens` tokens don't need.
  void truncate(int64_t tokens) noexcept;

  /// Valid until the next call of reserve or truncate.
  std::span<const int32_t> blocks() const {
    return blocks_;
  }

 private:
  BlockAllocator& allocator_;
  std::vector<int32_t> blocks_;
};

}  // namespace mlxcel::cache
