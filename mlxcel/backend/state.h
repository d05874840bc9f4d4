#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mlxcel/backend/batch.h"

namespace mlxcel::backend {

/// Tokens per block of the paged pool.
constexpr int64_t kBlockTokens = 32;

/// What one layer keeps of the past.
struct LayerState {
  enum class Kind : uint8_t { none, attention } kind = Kind::none;
  int64_t kv_heads = 0;
  int64_t key_dim = 0;    // per head
  int64_t value_dim = 0;  // per head
};

/// What a model keeps per sequence, layer by layer.
struct StateLayout {
  std::vector<LayerState> layers;
};

/// The memory of all sequences of one model, made by the backend from the
/// layout. Blocks are numbered 0 .. blocks-1 and belong to whom the block
/// table (cache/) gives them.
class StatePool {
 public:
  virtual ~StatePool() = default;
  virtual int64_t blocks() const = 0;
  /// Bytes that one block of kBlockTokens tokens takes in all layers.
  virtual uint64_t block_bytes() const = 0;
  /// Drops what is kept for the sequence beyond its first `tokens` tokens
  /// (0: all). Blocks are the caller's business.
  virtual void truncate(SequenceId sequence, int64_t tokens) = 0;
  /// How many of the first `tokens` tokens of the sequence, whose steps all
  /// went well, are still kept: fewer if a failed step took some with it.
  virtual int64_t kept(SequenceId /*sequence*/, int64_t tokens) const {
    return tokens;
  }
};

}  // namespace mlxcel::backend
