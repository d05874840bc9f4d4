#pragma once

#include <cstdint>
#include <vector>

#include "mlxcel/backend/cpu/attention_kernels.h"
#include "mlxcel/backend/state.h"

namespace mlxcel::backend::cpu {

/// The paged pool. All layers of a block lie together, so that memory is
/// touched (and resident) only as far as blocks are used.
class KvPool : public StatePool {
 public:
  /// Throws Error(unsupported) naming a layer whose state it can't keep,
  /// Error(out_of_memory) if the size is out of reach.
  KvPool(const StateLayout& layout, int64_t blocks, bool half);
  ~KvPool() override;
  KvPool(const KvPool&) = delete;
  KvPool& operator=(const KvPool&) = delete;

  int64_t blocks() const override {
    return blocks_;
  }
  uint64_t block_bytes() const override {
    return block_bytes_;
  }
  void truncate(SequenceId, int64_t) override {
    // All state is in blocks, which are the caller's.
  }

  /// Throws Error(internal) if the layer is not there or keeps nothing.
  const KvView& layer(int64_t index) const;
  int64_t kv_heads(int64_t index) const {
    return kv_heads_[static_cast<size_t>(index)];
  }

 private:
  int64_t blocks_;
  uint64_t block_bytes_ = 0;
  std::byte* memory_ = nullptr;
  std::vector<KvView> layers_;  // head_stride 0: no state
  std::vector<int64_t> kv_heads_;
};

}  // namespace mlxcel::backend::cpu
