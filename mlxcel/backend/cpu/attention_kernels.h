#pragma once

#include <cstddef>
#include <cstdint>

#include "mlxcel/backend/state.h"

namespace mlxcel::backend::cpu {

/// Tokens whose scores are computed together; tiles start at absolute
/// multiples of it, so that a row's bits don't depend on how it was fed.
constexpr int64_t kTileTokens = 64;
constexpr int64_t kTileBlocks = kTileTokens / kBlockTokens;
/// Tokens of a decode piece, also at absolute multiples.
constexpr int64_t kSpanTokens = 128;

/// One layer's keys and values in the pool. A block holds, per kv head, the
/// keys [key_dim, kBlockTokens] (so that scores of many tokens are computed
/// side by side), then the values [kBlockTokens, value_stride], in float32 or
/// IEEE half precision.
struct KvView {
  std::byte* base = nullptr;
  uint64_t block_stride = 0;  // bytes from one block to the next
  uint64_t head_stride = 0;   // bytes from one kv head to the next
  uint64_t value_offset = 0;  // bytes from a head's keys to its values
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  int64_t value_stride = 0;  // value_dim rounded up; the rest stays zero
  bool half = false;

  std::byte* keys(int32_t block, int64_t head) const {
    return base + static_cast<uint64_t>(block) * block_stride +
           static_cast<uint64_t>(head) * head_stride;
  }
  std::byte* values(int32_t block, int64_t head) const {
    return keys(block, head) + value_offset;
  }
};

/// What happens to each head of q or k before it is used: y = factor *
/// rotate(norm(x)).
struct HeadTransform {
  int64_t dim = 0;
  const float* norm_weight = nullptr;  // [dim] or null: no norm
  float epsilon = 0;
  int64_t rotary_dims = 0;
  bool interleaved = false;
  float factor = 1.0F;
};

/// Decode: one row's queries of one kv head over part of the past.
struct SpanWork {
  const KvView* kv;
  const int32_t* blocks;  // of the sequence
  int64_t kv_head;
  const float* queries;  // [group, key_dim], in units of log2
  int64_t group;
  int64_t first;  // tokens [first, end) within one span
  int64_t end;
  float* partial;  // partial_floats(group, value_stride)
};

/// A span's result: per query the weighted values, then the largest scores,
/// then the sums of the weights.
inline int64_t partial_floats(int64_t group, int64_t value_stride) {
  return group * (value_stride + 2);
}

/// Prefill: rows [position, position + rows) of one sequence and one kv head.
struct BlockWork {
  const KvView* kv;
  const int32_t* blocks;  // of the sequence
  int64_t kv_head;
  const float* queries;  // [rows * group, key_dim], in units of log2
  int64_t rows;
  int64_t group;
  int64_t position;
  int64_t window;  // keys a row sees; 0: all
  float* out;      // row t, query j at t * out_stride + j * value_dim
  int64_t out_stride;
  float* scratch;  // block_scratch_floats(...)
};

inline int64_t block_scratch_floats(
    int64_t queries, int64_t key_dim, int64_t value_stride
) {
  return kTileTokens * (key_dim + value_stride) +
         queries * (kTileTokens + value_stride + 3);
}

struct AttentionKernels {
  /// `count` heads of one row. rotation: cos [rotary_dims / 2], then sin.
  void (*transform_heads
  )(const HeadTransform& transform,
    const float* x,
    int64_t count,
    const float* rotation,
    float* y);
  /// Stores one token of all kv heads: keys [kv_heads, key_dim] and values
  /// [kv_heads, value_dim]. Half precision saturates.
  void (*append
  )(const KvView& kv,
    int64_t kv_heads,
    int32_t block,
    int64_t slot,
    const float* keys,
    const float* values);
  void (*attend_span)(const SpanWork& work);
  /// Joins consecutive spans in order: out [group, value_dim].
  void (*combine_spans
  )(const float* partials,
    int64_t spans,
    int64_t group,
    int64_t value_dim,
    int64_t value_stride,
    float* out);
  void (*attend_block)(const BlockWork& work);
};

}  // namespace mlxcel::backend::cpu
