#include "mlxcel/backend/cpu/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <numbers>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"

namespace mlxcel::backend::cpu {

namespace {

// Below so many products a region costs more than the second thread saves.
constexpr int64_t kParallelProducts = 1 << 15;
constexpr int64_t kParallelValues = 1 << 14;

void check_spec(const AttentionSpec& spec) {
  auto wrong = [&](const std::string& what) {
    fail(
        ErrorCode::internal,
        fmt::format("[attention] layer {}: {}", spec.layer, what)
    );
  };
  if (spec.heads <= 0 || spec.kv_heads <= 0 ||
      spec.heads % spec.kv_heads != 0 || spec.key_dim <= 0 ||
      spec.value_dim <= 0 || spec.window < 0) {
    wrong(fmt::format(
        "{} heads, {} kv heads of {} and {} values, window {}",
        spec.heads,
        spec.kv_heads,
        spec.key_dim,
        spec.value_dim,
        spec.window
    ));
  }
  if (spec.rope) {
    int64_t dims = spec.rope->dims;
    auto pairs = static_cast<int64_t>(spec.rope->inverse_frequencies.size());
    if (dims < 0 || dims > spec.key_dim || dims != 2 * pairs) {
      wrong(fmt::format("{} rotary dims, {} frequencies", dims, pairs));
    }
  }
  for (const auto& norm : {spec.query_norm, spec.key_norm}) {
    if (norm && (!norm->weight || norm->weight->size != spec.key_dim)) {
      wrong("a head norm of another size than the head");
    }
  }
}

HeadTransform transform_of(
    const AttentionSpec& spec, const std::optional<HeadNorm>& norm
) {
  HeadTransform transform;
  transform.dim = spec.key_dim;
  if (norm) {
    transform.norm_weight =
        static_cast<const CpuVector&>(*norm->weight).values.data();
    transform.epsilon = norm->epsilon;
  }
  if (spec.rope) {
    transform.rotary_dims = spec.rope->dims;
    transform.interleaved = spec.rope->interleaved;
  }
  return transform;
}

}  // namespace

std::shared_ptr<CpuAttention> make_cpu_attention(
    const AttentionSpec& spec, std::shared_ptr<RopeTable> rope
) {
  check_spec(spec);
  auto layer = std::make_shared<CpuAttention>();
  layer->spec = spec;
  layer->query = transform_of(spec, spec.query_norm);
  layer->key = transform_of(spec, spec.key_norm);
  // Scores are kept in units of log2: exp2 is cheaper than exp.
  layer->query.factor = spec.scale * std::numbers::log2e_v<float>;
  layer->rope = std::move(rope);
  return layer;
}

void AttentionRunner::run(
    const CpuAttention& layer, StepPlan& plan, const float* qkv, float* out
) {
  const AttentionSpec& spec = layer.spec;
  const KvView& kv = plan.pool().layer(spec.layer);
  if (kv.key_dim != spec.key_dim || kv.value_dim != spec.value_dim ||
      plan.pool().kv_heads(spec.layer) != spec.kv_heads) {
    fail(
        ErrorCode::internal,
        fmt::format("[attention] layer {}: another state layout", spec.layer)
    );
  }
  plan_pieces(layer, plan);
  Tensor queries = arena_.make(plan.rows() * spec.heads, spec.key_dim);
  Tensor partials = arena_.make(
      slots_ * spec.kv_heads, partial_floats(layer.group(), kv.value_stride)
  );
  const float* rotation =
      layer.rope ? layer.rope->rows(plan.step(), plan.batch().positions)
                 : nullptr;
  Call call{
      layer,
      plan,
      kv,
      qkv,
      rotation,
      out,
      cpu_tensor(queries).data,
      cpu_tensor(partials).data};
  prepare_rows(call);
  attend(call);
}

void AttentionRunner::plan_pieces(
    const CpuAttention& layer, const StepPlan& plan
) {
  blocks_.clear();
  spans_.clear();
  slots_ = 0;
  work_ = 0;
  int64_t most = block_rows(layer.group());
  for (const Segment& segment : plan.batch().segments) {
    int64_t end = segment.first + segment.count;
    for (int64_t row = segment.first; row < end;) {
      if (segment.role == Role::generated) {
        plan_row(plan, layer.spec.window, row);
        ++row;
      } else {
        int64_t count = std::min(most, end - row);
        blocks_.push_back({row, count});
        work_ += count * (plan.past(row) + count);
        row += count;
      }
    }
  }
  // Later rows see more: the dear pieces first, the cheap ones fill up.
  std::reverse(blocks_.begin(), blocks_.end());
}

void AttentionRunner::plan_row(
    const StepPlan& plan, int64_t window, int64_t row
) {
  int64_t end = plan.past(row) + 1;
  int64_t first = window > 0 ? std::max<int64_t>(0, end - window) : 0;
  int64_t low = first / kSpanTokens;
  int64_t spans = ceil_div(end, kSpanTokens) - low;
  for (int64_t i = 0; i < spans; ++i) {
    int64_t start = (low + i) * kSpanTokens;
    spans_.push_back(
        {row,
         std::max(first, start),
         std::min(end, start + kSpanTokens),
         i,
         spans,
         slots_}
    );
  }
  slots_ += spans;
  work_ += end - first;
}

void AttentionRunner::prepare_row(const Call& call, int64_t row, float* keys) {
  const AttentionSpec& spec = call.layer.spec;
  const float* x = call.qkv + row * call.layer.input_cols();
  const float* rotation =
      call.layer.rope ? call.rotation + row * spec.rope->dims : nullptr;
  int64_t group = call.layer.group();
  for (int64_t head = 0; head < spec.kv_heads; ++head) {
    kernels_.transform_heads(
        call.layer.query, x, group, rotation, call.query(row, head)
    );
    x += group * spec.key_dim;
  }
  kernels_.transform_heads(call.layer.key, x, spec.kv_heads, rotation, keys);
  x += spec.kv_heads * spec.key_dim;
  int64_t position = call.plan.past(row);
  const Segment& segment = call.plan.segment(row);
  kernels_.append(
      call.kv,
      spec.kv_heads,
      segment.blocks[static_cast<size_t>(position / kBlockTokens)],
      position % kBlockTokens,
      keys,
      x
  );
}

void AttentionRunner::prepare_rows(const Call& call) {
  int64_t rows = call.plan.rows();
  int64_t width = call.layer.spec.kv_heads * call.layer.spec.key_dim;
  bool alone = rows * call.layer.input_cols() < kParallelValues;
  int64_t pieces = ceil_div(rows, kRowGrain);
  Tensor keys = arena_.make(alone ? 1 : pieces, width);
  float* buffer = cpu_tensor(keys).data;
  if (alone) {
    for (int64_t row = 0; row < rows; ++row) {
      prepare_row(call, row, buffer);
    }
    return;
  }
  pool_.parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      int64_t last = std::min(rows, (piece + 1) * kRowGrain);
      for (int64_t row = piece * kRowGrain; row < last; ++row) {
        prepare_row(call, row, buffer + piece * width);
      }
    }
  });
}

void AttentionRunner::attend(const Call& call) {
  const AttentionSpec& spec = call.layer.spec;
  int64_t counters = spans_.empty() ? 0 : call.plan.rows() * spec.kv_heads;
  if (counters > finished_size_) {
    finished_ =
        std::make_unique<std::atomic<int64_t>[]>(static_cast<size_t>(counters));
    finished_size_ = counters;
  }
  int64_t most = 0;
  for (const Block& block : blocks_) {
    most = std::max(most, block.count);
  }
  int64_t scratch_floats = block_scratch_floats(
      most * call.layer.group(), spec.key_dim, call.kv.value_stride
  );
  Tensor scratch = arena_.make(most > 0 ? pool_.size() : 0, scratch_floats);
  auto blocks = static_cast<int64_t>(blocks_.size());
  int64_t pieces =
      (blocks + static_cast<int64_t>(spans_.size())) * spec.kv_heads;
  std::atomic<int64_t> next = 0;
  auto work = [&](int thread, int) {
    float* own = cpu_tensor(scratch).data + thread * scratch_floats;
    while (true) {
      int64_t piece = next.fetch_add(1, std::memory_order_relaxed);
      if (piece >= pieces) {
        return;
      }
      int64_t index = piece / spec.kv_heads;
      int64_t head = piece % spec.kv_heads;
      if (index < blocks) {
        attend_block(call, blocks_[static_cast<size_t>(index)], head, own);
      } else {
        attend_span(call, spans_[static_cast<size_t>(index - blocks)], head);
      }
    }
  };
  int64_t products = work_ * spec.heads * (spec.key_dim + spec.value_dim);
  if (products < kParallelProducts || pieces == 1) {
    work(0, 1);
  } else {
    pool_.run(work);
  }
}

void AttentionRunner::attend_block(
    const Call& call, const Block& block, int64_t head, float* scratch
) {
  const AttentionSpec& spec = call.layer.spec;
  int64_t group = call.layer.group();
  int64_t stride = spec.heads * spec.value_dim;
  BlockWork work{
      .kv = &call.kv,
      .blocks = call.plan.segment(block.row).blocks.data(),
      .kv_head = head,
      .queries = call.query(block.row, head),
      .rows = block.count,
      .group = group,
      .position = call.plan.past(block.row),
      .window = spec.window,
      .out = call.out + block.row * stride + head * group * spec.value_dim,
      .out_stride = stride,
      .scratch = scratch,
  };
  kernels_.attend_block(work);
}

void AttentionRunner::attend_span(
    const Call& call, const Span& span, int64_t head
) {
  const AttentionSpec& spec = call.layer.spec;
  int64_t group = call.layer.group();
  int64_t floats = partial_floats(group, call.kv.value_stride);
  float* partials =
      call.partials + (span.slot * spec.kv_heads + head * span.spans) * floats;
  SpanWork work{
      .kv = &call.kv,
      .blocks = call.plan.segment(span.row).blocks.data(),
      .kv_head = head,
      .queries = call.query(span.row, head),
      .group = group,
      .first = span.first,
      .end = span.end,
      .partial = partials + span.index * floats,
  };
  kernels_.attend_span(work);
  if (span.spans > 1) {
    std::atomic<int64_t>& finished =
        finished_[static_cast<size_t>(span.row * spec.kv_heads + head)];
    if (finished.fetch_add(1, std::memory_order_acq_rel) + 1 < span.spans) {
      return;
    }
    finished.store(0, std::memory_order_relaxed);
  }
  kernels_.combine_spans(
      partials,
      span.spans,
      group,
      spec.value_dim,
      call.kv.value_stride,
      call.out + (span.row * spec.heads + head * group) * spec.value_dim
  );
}

}  // namespace mlxcel::backend::cpu
