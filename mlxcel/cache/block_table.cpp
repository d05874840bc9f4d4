#include "mlxcel/cache/block_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"

namespace mlxcel::cache {

BlockAllocator::BlockAllocator(int64_t blocks)
    : capacity_(std::max<int64_t>(blocks, 0)) {
  free_.reserve(static_cast<size_t>(capacity_));
  for (int64_t block = capacity_ - 1; block >= 0; --block) {
    free_.push_back(static_cast<int32_t>(block));
  }
}

int32_t BlockAllocator::take() {
  int32_t block = free_.back();
  free_.pop_back();
  return block;
}

void BlockAllocator::give_back(int32_t block) noexcept {
  free_.push_back(block);
}

BlockTable::~BlockTable() {
  truncate(0);
}

void BlockTable::reserve(int64_t tokens) {
  int64_t needed = ceil_div(tokens, backend::kBlockTokens);
  int64_t missing = needed - static_cast<int64_t>(blocks_.size());
  if (missing <= 0) {
    return;
  }
  if (missing > allocator_.available()) {
    fail(
        ErrorCode::out_of_memory,
        fmt::format(
            "[cache] {} tokens need {} blocks more, {} of {} are free",
            tokens,
            missing,
            allocator_.available(),
            allocator_.capacity()
        )
    );
  }
  blocks_.reserve(static_cast<size_t>(needed));
  while (static_cast<int64_t>(blocks_.size()) < needed) {
    blocks_.push_back(allocator_.take());
  }
}

void BlockTable::truncate(int64_t tokens) noexcept {
  int64_t needed =
      ceil_div(std::max<int64_t>(tokens, 0), backend::kBlockTokens);
  while (static_cast<int64_t>(blocks_.size()) > needed) {
    allocator_.give_back(blocks_.back());
    blocks_.pop_back();
  }
}

}  // namespace mlxcel::cache
