#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "mlx/mlx.h"
#include "mlxcel/backend/state.h"

namespace mlxcel::backend::graph {

namespace mx = mlx::core;

/// Keys and values of one layer of one sequence, contiguous, with room to
/// grow: [1, kv_heads, capacity, dim].
struct LayerKv {
  std::optional<mx::array> keys;
  std::optional<mx::array> values;
};

struct SequenceKv {
  int64_t tokens = 0;  // held in every layer
  std::vector<LayerKv> layers;
};

/// Keeps each sequence's keys and values contiguous. Blocks are only counted:
/// a sequence can't take over those of another.
class GraphStatePool final : public StatePool {
 public:
  GraphStatePool(StateLayout layout, int64_t blocks, uint64_t element_bytes);

  int64_t blocks() const override;
  uint64_t block_bytes() const override;
  void truncate(SequenceId sequence, int64_t tokens) override;
  int64_t kept(SequenceId sequence, int64_t tokens) const override;

  const StateLayout& layout() const {
    return layout_;
  }
  /// Makes an empty one if there is none.
  SequenceKv& sequence(SequenceId id);
  /// Appends k [1, kv_heads, count, key_dim] and v at `position`; what was
  /// there and beyond is overwritten. Returns all position + count of both.
  std::pair<mx::array, mx::array> append(
      LayerKv& kv,
      int64_t position,
      const mx::array& k,
      const mx::array& v,
      mx::Stream stream
  );

 private:
  StateLayout layout_;
  int64_t blocks_;
  uint64_t element_bytes_;
  std::unordered_map<SequenceId, SequenceKv> sequences_;
};

}  // namespace mlxcel::backend::graph
