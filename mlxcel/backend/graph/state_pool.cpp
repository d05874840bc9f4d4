#include "mlxcel/backend/graph/state_pool.h"

#include <algorithm>

#include "mlxcel/core/numbers.h"

namespace mlxcel::backend::graph {

namespace {

// Positions that a buffer grows by, so that most appends are in place.
constexpr int64_t kGrowth = 256;

// Writes `tail` at `position` of `whole` and gives the first position + count
// entries back. The old buffer has no other holder, so MLX updates it in
// place.
mx::array write(
    std::optional<mx::array>& whole,
    int64_t position,
    const mx::array& tail,
    mx::Stream stream
) {
  int first = static_cast<int>(position);
  int heads = tail.shape(1);
  int last = first + tail.shape(2);
  int dim = tail.shape(3);
  if (!whole || whole->shape(2) < last) {
    int capacity = static_cast<int>(round_up(last, kGrowth));
    mx::array fresh =
        mx::zeros({1, heads, capacity - first, dim}, tail.dtype(), stream);
    if (first > 0) {
      mx::array kept =
          mx::slice(*whole, {0, 0, 0, 0}, {1, heads, first, dim}, stream);
      fresh = mx::concatenate({kept, fresh}, 2, stream);
    }
    whole = fresh;
  }
  mx::array old = std::move(*whole);
  whole = mx::slice_update(
      old,
      tail,
      mx::Shape{0, 0, first, 0},
      mx::Shape{1, heads, last, dim},
      stream
  );
  return mx::slice(*whole, {0, 0, 0, 0}, {1, heads, last, dim}, stream);
}

}  // namespace

GraphStatePool::GraphStatePool(
    StateLayout layout, int64_t blocks, uint64_t element_bytes
)
    : layout_(std::move(layout)),
      blocks_(blocks),
      element_bytes_(element_bytes) {}

int64_t GraphStatePool::blocks() const {
  return blocks_;
}

uint64_t GraphStatePool::block_bytes() const {
  uint64_t values = 0;
  for (const LayerState& layer : layout_.layers) {
    if (layer.kind == LayerState::Kind::attention) {
      values += static_cast<uint64_t>(
          layer.kv_heads * (layer.key_dim + layer.value_dim)
      );
    }
  }
  return values * element_bytes_ * kBlockTokens;
}

void GraphStatePool::truncate(SequenceId sequence, int64_t tokens) {
  auto found = sequences_.find(sequence);
  if (found == sequences_.end()) {
    return;
  }
  if (tokens <= 0) {
    sequences_.erase(found);
  } else {
    found->second.tokens = std::min(found->second.tokens, tokens);
  }
}

int64_t GraphStatePool::kept(SequenceId sequence, int64_t tokens) const {
  auto found = sequences_.find(sequence);
  return found == sequences_.end() ? 0 : std::min(found->second.tokens, tokens);
}

SequenceKv& GraphStatePool::sequence(SequenceId id) {
  SequenceKv& kv = sequences_[id];
  kv.layers.resize(layout_.layers.size());
  return kv;
}

std::pair<mx::array, mx::array> GraphStatePool::append(
    LayerKv& kv,
    int64_t position,
    const mx::array& k,
    const mx::array& v,
    mx::Stream stream
) {
  mx::array keys = write(kv.keys, position, k, stream);
  mx::array values = write(kv.values, position, v, stream);
  return {std::move(keys), std::move(values)};
}

}  // namespace mlxcel::backend::graph
