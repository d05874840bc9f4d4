#include "mlxcel/backend/cpu/cpu_meter.h"

#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/backend/cpu/matmul_plan.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"

namespace mlxcel::backend::cpu {

namespace {

// As in matmul_prefill.cpp.
constexpr int64_t kStagedBytes = 64 << 10;

class MeterLinear : public PreparedLinear {
 public:
  std::vector<WeightFormat> formats;
};

class MeterExperts : public PreparedExperts {
 public:
  std::vector<WeightFormat> gate_up;
  std::vector<WeightFormat> down;
};

class MeterEmbedding : public EmbeddingSource {
 public:
  MeterEmbedding(int64_t rows, int64_t cols) : rows_(rows), cols_(cols) {}
  int64_t vocabulary() const override {
    return rows_;
  }
  int64_t width() const override {
    return cols_;
  }
  void gather(std::span<const int32_t>, float*) const override {}

 private:
  int64_t rows_;
  int64_t cols_;
};

class MeterAttention : public PreparedAttention {
 public:
  AttentionSpec spec;
};

class MeterPool : public StatePool {
 public:
  MeterPool(int64_t blocks, uint64_t block_bytes)
      : blocks_(blocks), block_bytes_(block_bytes) {}
  int64_t blocks() const override {
    return blocks_;
  }
  uint64_t block_bytes() const override {
    return block_bytes_;
  }
  void truncate(SequenceId, int64_t) override {}

 private:
  int64_t blocks_;
  uint64_t block_bytes_;
};

[[noreturn]] void nothing_computed(const char* operation) {
  fail(
      ErrorCode::internal,
      fmt::format("[meter] {}: nothing was computed", operation)
  );
}

// Rows of generated tokens go to their partial results by spans.
int64_t span_slots(const Batch& batch, int64_t window) {
  int64_t slots = 0;
  for (const Segment& segment : batch.segments) {
    if (segment.role != Role::generated) {
      continue;
    }
    for (int64_t i = 0; i < segment.count; ++i) {
      int64_t end = segment.position + i + 1;
      int64_t first = window > 0 ? std::max<int64_t>(0, end - window) : 0;
      slots += ceil_div(end, kSpanTokens) - first / kSpanTokens;
    }
  }
  return slots;
}

// Rows of the largest piece of a prompt.
int64_t largest_block(const Batch& batch, int64_t group) {
  int64_t most = 0;
  for (const Segment& segment : batch.segments) {
    if (segment.role == Role::prompt) {
      most = std::max(most, std::min(block_rows(group), segment.count));
    }
  }
  return most;
}

}  // namespace

MemoryUse CpuMeter::use() const {
  int64_t scratch = padded_ + rotations_ + threads_ * thread_scratch_;
  for (int64_t slot : slots_) {
    scratch += slot;
  }
  return {
      weights_,
      prepared_,
      static_cast<uint64_t>(arena_.held_bytes() + scratch),
  };
}

bool CpuMeter::supports(Operation operation, const WeightFormat& format) const {
  return has_kernels(operation, format);
}

void CpuMeter::keep(const Weight& weight) {
  if (sources_.insert(weight.source.get()).second) {
    weights_ += static_cast<uint64_t>(weight.elements()) *
                static_cast<uint64_t>(dtype_size(weight.dtype));
  }
}

void CpuMeter::keep(const LinearWeight& weight) {
  if (!is_mlx_format(weight.format)) {
    fail(
        ErrorCode::unsupported,
        fmt::format(
            "[{}] {}: not implemented on the cpu backend",
            weight.path,
            weight.format.describe()
        )
    );
  }
  keep(weight.codes);
  for (const auto* plane : {&weight.scales, &weight.biases, &weight.bias}) {
    if (*plane) {
      keep(**plane);
    }
  }
}

std::shared_ptr<const PreparedLinear> CpuMeter::prepare_linear(
    const WeightGroup& group
) {
  auto linear = std::make_shared<MeterLinear>();
  linear->rows = group.rows();
  linear->cols = group.cols();
  for (const LinearWeight& part : group.parts) {
    keep(part);
    linear->formats.push_back(part.format);
    if (part.bias) {
      prepared_ += static_cast<uint64_t>(part.rows) * sizeof(float);
    }
  }
  return linear;
}

std::shared_ptr<const EmbeddingSource> CpuMeter::prepare_embedding(
    const LinearWeight& table
) {
  keep(table);
  return std::make_shared<MeterEmbedding>(table.rows, table.cols);
}

std::shared_ptr<const PreparedVector> CpuMeter::prepare_vector(
    const Weight& weight, float
) {
  auto vector = std::make_shared<PreparedVector>();
  vector->size = weight.elements();
  prepared_ += static_cast<uint64_t>(vector->size) * sizeof(float);
  // The stored one is read once.
  keep(weight);
  return vector;
}

std::shared_ptr<const PreparedAttention> CpuMeter::prepare_attention(
    const AttentionSpec& spec
) {
  auto attention = std::make_shared<MeterAttention>();
  attention->spec = spec;
  return attention;
}

std::unique_ptr<StatePool> CpuMeter::make_pool(
    const StateLayout& layout, int64_t blocks
) {
  return std::make_unique<MeterPool>(
      blocks, KvPool(layout, 0, options_.half_state).block_bytes()
  );
}

void CpuMeter::begin(const Batch& batch, StatePool&) {
  batch_ = &batch;
}

void CpuMeter::end() {
  batch_ = nullptr;
  arena_.end_step();
}

Tensor CpuMeter::make_like(const Tensor& x, int64_t cols) {
  return arena_.make(x.rows(), cols);
}

Tensor CpuMeter::embed(const EmbeddingSource& table, float) {
  return arena_.make(batch_->rows(), table.width());
}

Tensor CpuMeter::linear(
    const PreparedLinear& weight, const Tensor& x, const Epilogue& epilogue
) {
  const auto& matrix = static_cast<const MeterLinear&>(weight);
  multiply(matrix.formats, x.rows(), matrix.cols);
  return make_like(x, epilogue.gate ? matrix.rows / 2 : matrix.rows);
}

// The scratch memory of a product.
void CpuMeter::multiply(
    const std::vector<WeightFormat>& formats, int64_t rows, int64_t cols
) {
  for (int64_t begin = 0; begin < rows; begin += kMaxRows) {
    int64_t count = std::min(kMaxRows, rows - begin);
    int64_t codes = 0;
    bool dense = false;
    int last_group = 0;
    for (const WeightFormat& format : formats) {
      bool int8 = options_.activations == ActivationMode::int8 &&
                  format.mode != QuantMode::dense;
      dense = dense || !int8;
      if (int8 && format.group != last_group) {
        last_group = format.group;
        codes += count * (padded_codes(cols) + 64 +
                          8 * padded_scales(cols / format.group));
      }
    }
    int64_t& slot = slots_[next_slot_++ % slots_.size()];
    slot = std::max(slot, codes);
    if (dense) {
      padded_ = std::max(padded_, count * (round_up(cols, 16) + 16) * 4);
    }
    int64_t panel_cols = std::min(kPanelCols, cols);
    int64_t panels =
        2 * kPanelRows * (4 * round_up(panel_cols, 64) + 8 * (panel_cols / 32));
    thread_scratch_ = std::max(
        thread_scratch_,
        panels + count * 2 * kPanelRows * 4 + kernel_scratch(cols) +
            kStagedBytes
    );
  }
}

std::shared_ptr<const PreparedExperts> CpuMeter::prepare_experts(
    const ExpertGroup& group
) {
  auto experts = std::make_shared<MeterExperts>();
  experts->experts = group.gate.experts;
  experts->inner = group.gate.rows;
  experts->width = group.gate.cols;
  experts->gate_up = {group.gate.format, group.up.format};
  experts->down = {group.down.format};
  for (const ExpertStack* stack : {&group.gate, &group.up, &group.down}) {
    keep(stack->codes);
    for (const auto* plane : {&stack->scales, &stack->biases}) {
      if (*plane) {
        keep(**plane);
      }
    }
  }
  return experts;
}

std::shared_ptr<const Routing> CpuMeter::route(
    const Tensor& scores, const RouterSpec& spec
) {
  auto routing = std::make_shared<Routing>();
  routing->rows = scores.rows();
  routing->chosen = spec.chosen;
  return routing;
}

// As if all rows went to one expert: which is what may happen.
Tensor CpuMeter::
    experts(const PreparedExperts& group, const Routing& routing, const Tensor& x, Activation, const Tensor&) {
  const auto& ready = static_cast<const MeterExperts&>(group);
  Tensor y = make_like(x, ready.width);
  Tensor outputs = arena_.make(x.rows() * routing.chosen, ready.width);
  Tensor inputs = make_like(x, ready.width);
  Tensor inner = make_like(x, ready.inner);
  Tensor results = make_like(x, ready.width);
  multiply(ready.gate_up, x.rows(), ready.width);
  multiply(ready.down, x.rows(), ready.inner);
  return y;
}

Tensor CpuMeter::norm(
    NormKind,
    const Tensor& x,
    const PreparedVector*,
    const PreparedVector*,
    float
) {
  return make_like(x, x.cols());
}

Tensor CpuMeter::attend(const PreparedAttention& layer, const Tensor& qkv) {
  const AttentionSpec& spec = static_cast<const MeterAttention&>(layer).spec;
  int64_t group = spec.heads / spec.kv_heads;
  int64_t value_stride = round_up(spec.value_dim, 16);
  Tensor y = arena_.make(qkv.rows(), spec.heads * spec.value_dim);
  Tensor queries = arena_.make(qkv.rows() * spec.heads, spec.key_dim);
  Tensor partials = arena_.make(
      span_slots(*batch_, spec.window) * spec.kv_heads,
      partial_floats(group, value_stride)
  );
  if (spec.rope) {
    rotations_ = std::max<int64_t>(
        rotations_,
        qkv.rows() * spec.rope->dims * static_cast<int64_t>(sizeof(float))
    );
  }
  {
    Tensor keys = arena_.make(
        ceil_div(qkv.rows(), kRowGrain), spec.kv_heads * spec.key_dim
    );
  }
  int64_t most = largest_block(*batch_, group);
  Tensor scratch = arena_.make(
      most > 0 ? threads_ : 0,
      block_scratch_floats(most * group, spec.key_dim, value_stride)
  );
  return y;
}

Tensor CpuMeter::add(const Tensor& a, const Tensor&) {
  return make_like(a, a.cols());
}

Tensor CpuMeter::multiply(const Tensor& x, float) {
  return make_like(x, x.cols());
}

Tensor CpuMeter::select_logit_rows(const Tensor& hidden) {
  return arena_.make(
      static_cast<int64_t>(batch_->logit_rows.size()), hidden.cols()
  );
}

Tensor CpuMeter::logits(
    const PreparedLinear& head, const Tensor& x, float, float
) {
  return linear(head, x, {});
}

void CpuMeter::export_rows(const Tensor&, std::span<float>) {
  nothing_computed("export_rows");
}

Tensor CpuMeter::import_rows(std::span<const float>, int64_t, int64_t) {
  nothing_computed("import_rows");
}

void CpuMeter::argmax(const Tensor&, std::span<int32_t>) {
  nothing_computed("argmax");
}

}  // namespace mlxcel::backend::cpu
