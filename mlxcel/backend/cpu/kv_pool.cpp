#include "mlxcel/backend/cpu/kv_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/os.h"

namespace mlxcel::backend::cpu {

namespace {

// Values per row of a head's values: whole vectors of the widest kind.
constexpr int64_t kValueStep = 16;
// No model comes near it; sizes below it can't overflow.
constexpr int64_t kMostHeadValues = 1 << 20;

void check_layer(const LayerState& state, size_t index) {
  bool fits = state.kv_heads > 0 && state.kv_heads <= kMostHeadValues &&
              state.key_dim > 0 && state.key_dim <= kMostHeadValues &&
              state.value_dim > 0 && state.value_dim <= kMostHeadValues;
  if (!fits) {
    fail(
        ErrorCode::unsupported,
        fmt::format(
            "[cpu] layer {}: {} kv heads of {} and {} values",
            index,
            state.kv_heads,
            state.key_dim,
            state.value_dim
        )
    );
  }
}

}  // namespace

KvPool::KvPool(const StateLayout& layout, int64_t blocks, bool half)
    : blocks_(std::max<int64_t>(blocks, 0)) {
  std::vector<uint64_t> offsets;  // of a layer within a block
  uint64_t element = half ? sizeof(uint16_t) : sizeof(float);
  for (size_t i = 0; i < layout.layers.size(); ++i) {
    const LayerState& state = layout.layers[i];
    KvView view;
    kv_heads_.push_back(state.kv_heads);
    if (state.kind == LayerState::Kind::attention) {
      check_layer(state, i);
      view.key_dim = state.key_dim;
      view.value_dim = state.value_dim;
      view.value_stride = round_up(state.value_dim, kValueStep);
      view.half = half;
      view.value_offset =
          static_cast<uint64_t>(view.key_dim * kBlockTokens) * element;
      view.head_stride =
          view.value_offset +
          static_cast<uint64_t>(view.value_stride * kBlockTokens) * element;
    }
    layers_.push_back(view);
    offsets.push_back(block_bytes_);
    block_bytes_ += static_cast<uint64_t>(state.kv_heads) * view.head_stride;
  }
  auto size = checked_mul(block_bytes_, static_cast<uint64_t>(blocks_));
  if (!size || *size > uint64_t{1} << 46) {
    fail(
        ErrorCode::out_of_memory,
        fmt::format(
            "[cpu] a pool of {} blocks of {} bytes", blocks_, block_bytes_
        )
    );
  }
  if (*size > 0) {
    memory_ = os::reserve_memory(*size);
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    layers_[i].base = memory_ == nullptr ? nullptr : memory_ + offsets[i];
    layers_[i].block_stride = block_bytes_;
  }
}

KvPool::~KvPool() {
  os::release_memory(memory_, block_bytes_ * static_cast<uint64_t>(blocks_));
}

const KvView& KvPool::layer(int64_t index) const {
  if (index < 0 || index >= static_cast<int64_t>(layers_.size()) ||
      layers_[static_cast<size_t>(index)].head_stride == 0) {
    fail(
        ErrorCode::internal,
        fmt::format("[cpu] layer {} keeps no keys and values", index)
    );
  }
  return layers_[static_cast<size_t>(index)];
}

}  // namespace mlxcel::backend::cpu
