#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "mlxcel/backend/cpu/arena.h"
#include "mlxcel/backend/cpu/kernels.h"
#include "mlxcel/backend/cpu/step_plan.h"
#include "mlxcel/core/thread_pool.h"

namespace mlxcel::backend::cpu {

/// Rows whose keys and values go to the pool as one piece of work.
constexpr int64_t kRowGrain = 16;

/// Rows of a prompt that one piece of work attends for a kv head with `group`
/// heads: their queries share an unpacked tile of keys.
constexpr int64_t block_rows(int64_t group) {
  constexpr int64_t kQueries = 96;
  return group < kQueries ? kQueries / group : 1;
}

class CpuVector : public PreparedVector {
 public:
  std::vector<float> values;
};

class CpuAttention : public PreparedAttention {
 public:
  AttentionSpec spec;
  HeadTransform query;
  HeadTransform key;
  std::shared_ptr<RopeTable> rope;  // null: no rotation

  int64_t input_cols() const {
    return spec.heads * spec.key_dim +
           spec.kv_heads * (spec.key_dim + spec.value_dim);
  }
  int64_t group() const {
    return spec.heads / spec.kv_heads;
  }
};

/// Lays out the transforms. Throws Error(internal) naming the layer and what
/// does not fit.
std::shared_ptr<CpuAttention> make_cpu_attention(
    const AttentionSpec& spec, std::shared_ptr<RopeTable> rope
);

/// Runs attention layers: queries and keys are rotated, keys and values go to
/// the pool, then pieces of work are taken by whichever thread is free. A
/// piece is one kv head's share of a block of prompt rows or of a span of one
/// generated row's past; both are the same whatever the number of threads.
class AttentionRunner {
 public:
  AttentionRunner(const Kernels& kernels, Arena& arena, ThreadPool& pool)
      : kernels_(kernels.attention), arena_(arena), pool_(pool) {}

  /// qkv [T, input_cols] -> out [T, heads * value_dim]
  void run(
      const CpuAttention& layer, StepPlan& plan, const float* qkv, float* out
  );

 private:
  struct Block {
    int64_t row;
    int64_t count;
  };
  struct Span {
    int64_t row;
    int64_t first;  // tokens [first, end)
    int64_t end;
    int64_t index;  // among the spans of the row
    int64_t spans;  // of the row
    int64_t slot;   // of the row's first partial result
  };
  struct Call {
    const CpuAttention& layer;
    StepPlan& plan;
    const KvView& kv;
    const float* qkv;
    const float* rotation;
    float* out;
    float* queries;   // [kv_heads, T, group, key_dim]
    float* partials;  // of each row, kv head and span

    float* query(int64_t row, int64_t head) const {
      return queries +
             (head * plan.rows() + row) * layer.group() * layer.spec.key_dim;
    }
  };

  void plan_pieces(const CpuAttention& layer, const StepPlan& plan);
  void plan_row(const StepPlan& plan, int64_t window, int64_t row);
  void prepare_rows(const Call& call);
  void prepare_row(const Call& call, int64_t row, float* keys);
  void attend(const Call& call);
  void attend_block(
      const Call& call, const Block& block, int64_t head, float* scratch
  );
  void attend_span(const Call& call, const Span& span, int64_t head);

  AttentionKernels kernels_;
  Arena& arena_;
  ThreadPool& pool_;
  std::vector<Block> blocks_;
  std::vector<Span> spans_;
  int64_t slots_ = 0;
  int64_t work_ = 0;  // pairs of a row and a key, roughly
  // Spans done, per row and kv head; all zero between calls.
  std::unique_ptr<std::atomic<int64_t>[]> finished_;
  int64_t finished_size_ = 0;
};

}  // namespace mlxcel::backend::cpu
