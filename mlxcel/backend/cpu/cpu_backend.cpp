#include "mlxcel/backend/cpu/cpu_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/os.h"

namespace mlxcel::backend::cpu {

namespace {

constexpr int64_t kGrainValues = 1 << 13;
// What one call reads ahead.
constexpr size_t kPrefaultBytes = 8 << 20;

class CpuEmbedding : public EmbeddingSource {
 public:
  CpuEmbedding(const LinearWeight& table, ThreadPool& pool)
      : table_(table), pool_(pool) {}

  int64_t vocabulary() const override {
    return table_.rows;
  }
  int64_t width() const override {
    return table_.cols;
  }
  void gather(std::span<const int32_t> ids, float* out) const override {
    for (int32_t id : ids) {
      if (id < 0 || id >= table_.rows) {
        fail(
            ErrorCode::invalid_input,
            fmt::format(
                "[{}] token {} is not below {}", table_.path, id, table_.rows
            )
        );
      }
    }
    int64_t grain = std::max<int64_t>(1, kGrainValues / width());
    auto count = static_cast<int64_t>(ids.size());
    pool_.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
      gather_rows(
          table_,
          ids.subspan(
              static_cast<size_t>(begin), static_cast<size_t>(end - begin)
          ),
          out + begin * width()
      );
    });
  }

 private:
  LinearWeight table_;
  ThreadPool& pool_;
};

bool same_rope(const RopeSpec& a, const RopeSpec& b) {
  return a.dims == b.dims && a.amplitude == b.amplitude &&
         a.inverse_frequencies == b.inverse_frequencies;
}

const float* values_of(const PreparedVector* vector) {
  return vector == nullptr
             ? nullptr
             : static_cast<const CpuVector*>(vector)->values.data();
}

void check_size(
    const char* operation, const PreparedVector* vector, int64_t cols
) {
  if (vector != nullptr && vector->size != cols) {
    fail(
        ErrorCode::internal,
        fmt::format(
            "[{}] {} weights for rows of {}", operation, vector->size, cols
        )
    );
  }
}

}  // namespace

CpuOptions default_options(const Numerics& numerics) {
  CpuOptions options;
  options.exact = numerics.exact;
  options.isa = chosen_isa();
  const char* variable = os::environment("MLXCEL_CPU_ACT");
  std::string_view mode = variable != nullptr ? variable : "";
  if (mode != "" && mode != "int8" && mode != "f32") {
    fail(
        ErrorCode::usage,
        fmt::format("MLXCEL_CPU_ACT: expected int8 or f32, got {}", quote(mode))
    );
  }
  if (numerics.exact || mode == "f32") {
    options.activations = ActivationMode::float32;
  }
  options.half_state = !numerics.exact;
  return options;
}

CpuBackend::CpuBackend(const CpuOptions& options, ThreadPool& pool)
    : options_(options),
      pool_(pool),
      kernels_(kernels(options.isa)),
      attention_(kernels_, arena_, pool) {}

CpuBackend::~CpuBackend() = default;

std::string CpuBackend::describe() const {
  return fmt::format(
      "cpu: {}, {} thread{}",
      isa_name(options_.isa),
      pool_.size(),
      pool_.size() == 1 ? "" : "s"
  );
}

bool CpuBackend::supports(Operation operation, const WeightFormat& format)
    const {
  return has_kernels(operation, format);
}

void CpuBackend::keep(const Weight& weight) {
  if (kept_.insert(weight.source).second) {
    files_.add(weight);
    unread_.push_back(weight.bytes());
  }
}

void CpuBackend::keep(const LinearWeight& weight) {
  for (const Weight* plane : planes_of(weight)) {
    keep(*plane);
  }
}

std::shared_ptr<const PreparedLinear> CpuBackend::prepare_linear(
    const WeightGroup& group
) {
  auto linear = make_cpu_linear(group);
  for (const LinearWeight& part : group.parts) {
    keep(part);
  }
  return linear;
}

std::shared_ptr<const EmbeddingSource> CpuBackend::prepare_embedding(
    const LinearWeight& table
) {
  if (!is_mlx_format(table.format)) {
    fail(
        ErrorCode::unsupported,
        fmt::format(
            "[{}] {}: not implemented on the cpu backend",
            table.path,
            table.format.describe()
        )
    );
  }
  keep(table);
  return std::make_shared<CpuEmbedding>(table, pool_);
}

std::shared_ptr<const PreparedVector> CpuBackend::prepare_vector(
    const Weight& weight, float offset
) {
  auto vector = std::make_shared<CpuVector>();
  files_.add(weight);
  vector->values = to_float(weight);
  vector->size = static_cast<int64_t>(vector->values.size());
  if (offset != 0) {
    for (float& value : vector->values) {
      value += offset;
    }
  }
  return vector;
}

std::shared_ptr<const PreparedAttention> CpuBackend::prepare_attention(
    const AttentionSpec& spec
) {
  std::shared_ptr<RopeTable> rope;
  if (spec.rope && spec.rope->dims > 0) {
    for (const auto& known : ropes_) {
      if (same_rope(known->spec(), *spec.rope)) {
        rope = known;
      }
    }
    if (!rope) {
      rope = std::make_shared<RopeTable>(*spec.rope);
      ropes_.push_back(rope);
    }
  }
  return make_cpu_attention(spec, rope);
}

Resident CpuBackend::materialize() {
  Resident resident;
  resident.tensors = static_cast<int64_t>(unread_.size());
  // Planes follow each other in the file: few long runs, cut for all threads.
  std::sort(unread_.begin(), unread_.end(), [](auto a, auto b) {
    return a.data() < b.data();
  });
  std::vector<std::span<const std::byte>> pieces;
  for (std::span<const std::byte> bytes : unread_) {
    resident.bytes += bytes.size();
    while (!bytes.empty()) {
      bool follows =
          !pieces.empty() && pieces.back().size() < kPrefaultBytes &&
          pieces.back().data() + pieces.back().size() == bytes.data();
      if (!follows) {
        pieces.push_back(bytes.first(0));
      }
      size_t taken =
          std::min(bytes.size(), kPrefaultBytes - pieces.back().size());
      pieces.back() = {pieces.back().data(), pieces.back().size() + taken};
      bytes = bytes.subspan(taken);
    }
  }
  pool_.parallel_for(
      static_cast<int64_t>(pieces.size()),
      1,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          std::span<const std::byte> piece = pieces[static_cast<size_t>(i)];
          os::will_need(piece.data(), piece.size());
        }
      }
  );
  unread_.clear();
  files_.check();
  return resident;
}

std::unique_ptr<StatePool> CpuBackend::make_pool(
    const StateLayout& layout, int64_t blocks
) {
  return std::make_unique<KvPool>(layout, blocks, options_.half_state);
}

void CpuBackend::begin(const Batch& batch, StatePool& pool) {
  files_.throw_if_broken();
  plan_.begin(batch, static_cast<KvPool&>(pool));
}

void CpuBackend::end() {
  plan_.end();
  arena_.end_step();
  files_.check();
}

void CpuBackend::need_step(const char* operation) const {
  if (!plan_.active()) {
    fail(
        ErrorCode::internal,
        fmt::format("[{}] called outside a step", operation)
    );
  }
}

Tensor CpuBackend::make_like(const Tensor& x, int64_t cols) {
  Tensor y = arena_.make(x.rows(), cols);
  cpu_tensor(y).selected = cpu_tensor(x).selected;
  return y;
}

Tensor CpuBackend::embed(const EmbeddingSource& table, float scale) {
  need_step("embed");
  int64_t cols = table.width();
  Tensor y = arena_.make(plan_.rows(), cols);
  CpuTensor& out = cpu_tensor(y);
  table.gather(plan_.batch().tokens, out.data);
  if (scale != 1.0F) {
    for_rows(out.rows, cols, [&](int64_t row) {
      kernels_.row.multiply(out.row(row), scale, cols, out.row(row));
    });
  }
  return y;
}

Tensor CpuBackend::linear(
    const PreparedLinear& weight, const Tensor& x, const Epilogue& epilogue
) {
  need_step("linear");
  const auto& matrix = static_cast<const CpuLinear&>(weight);
  const CpuTensor& in = cpu_tensor(x);
  int64_t rows = in.selected ? plan_.selected() : plan_.rows();
  int64_t cols = epilogue.gate ? matrix.rows / 2 : matrix.rows;
  if (in.cols != matrix.cols || in.rows != rows) {
    fail(
        ErrorCode::internal,
        fmt::format(
            "[{}] an input of {} x {}, expected {} x {}",
            matrix.parts.empty() ? "linear" : matrix.parts[0].source.path,
            in.rows,
            in.cols,
            rows,
            matrix.cols
        )
    );
  }
  const CpuTensor* residual =
      epilogue.residual != nullptr ? &cpu_tensor(*epilogue.residual) : nullptr;
  if (residual != nullptr &&
      (residual->rows != rows || residual->cols != cols)) {
    fail(ErrorCode::internal, "[linear] a residual of another shape");
  }
  Tensor y = make_like(x, cols);
  CpuTensor& out = cpu_tensor(y);
  for (const RoleRun& run : plan_.runs(in.selected)) {
    MatmulEpilogue end;
    end.activation = epilogue.activation;
    end.gate = epilogue.gate;
    if (residual != nullptr) {
      end.residual = residual->row(run.first);
      end.ld_residual = cols;
    }
    cpu::linear(
        matrix,
        in.row(run.first),
        in.cols,
        run.count,
        family_of(run.role),
        epilogue.precise ? ActivationMode::float32 : options_.activations,
        options_.isa,
        end,
        out.row(run.first),
        cols,
        scratch_,
        pool_
    );
  }
  return y;
}

Tensor CpuBackend::norm(
    NormKind kind,
    const Tensor& x,
    const PreparedVector* weight,
    const PreparedVector* bias,
    float epsilon
) {
  const CpuTensor& in = cpu_tensor(x);
  check_size("norm", weight, in.cols);
  check_size("norm", bias, in.cols);
  Tensor y = make_like(x, in.cols);
  CpuTensor& out = cpu_tensor(y);
  const float* w = values_of(weight);
  const float* b = values_of(bias);
  for_rows(in.rows, in.cols, [&](int64_t row) {
    if (kind == NormKind::rms) {
      kernels_.row.rms_norm(in.row(row), w, epsilon, in.cols, out.row(row));
    } else {
      kernels_.row.layer_norm(
          in.row(row), w, b, epsilon, in.cols, out.row(row)
      );
    }
  });
  return y;
}

Tensor CpuBackend::attend(const PreparedAttention& layer, const Tensor& qkv) {
  need_step("attend");
  const auto& attention = static_cast<const CpuAttention&>(layer);
  const CpuTensor& in = cpu_tensor(qkv);
  if (in.rows != plan_.rows() || in.cols != attention.input_cols()) {
    fail(
        ErrorCode::internal,
        fmt::format(
            "[attention] layer {}: an input of {} x {}, expected {} x {}",
            attention.spec.layer,
            in.rows,
            in.cols,
            plan_.rows(),
            attention.input_cols()
        )
    );
  }
  Tensor y =
      arena_.make(in.rows, attention.spec.heads * attention.spec.value_dim);
  attention_.run(attention, plan_, in.data, cpu_tensor(y).data);
  return y;
}

Tensor CpuBackend::add(const Tensor& a, const Tensor& b) {
  const CpuTensor& left = cpu_tensor(a);
  const CpuTensor& right = cpu_tensor(b);
  if (left.rows != right.rows || left.cols != right.cols) {
    fail(ErrorCode::internal, "[add] values of different shapes");
  }
  Tensor y = make_like(a, left.cols);
  CpuTensor& out = cpu_tensor(y);
  for_rows(left.rows, left.cols, [&](int64_t row) {
    kernels_.row.add(left.row(row), right.row(row), left.cols, out.row(row));
  });
  return y;
}

Tensor CpuBackend::multiply(const Tensor& x, float factor) {
  const CpuTensor& in = cpu_tensor(x);
  Tensor y = make_like(x, in.cols);
  CpuTensor& out = cpu_tensor(y);
  for_rows(in.rows, in.cols, [&](int64_t row) {
    kernels_.row.multiply(in.row(row), factor, in.cols, out.row(row));
  });
  return y;
}

Tensor CpuBackend::select_logit_rows(const Tensor& hidden) {
  need_step("select_logit_rows");
  const CpuTensor& in = cpu_tensor(hidden);
  if (in.rows != plan_.rows() || in.selected) {
    fail(ErrorCode::internal, "[select_logit_rows] not the rows of the step");
  }
  Tensor y = arena_.make(plan_.selected(), in.cols);
  CpuTensor& out = cpu_tensor(y);
  out.selected = true;
  for (int64_t row = 0; row < out.rows; ++row) {
    int32_t from = plan_.batch().logit_rows[static_cast<size_t>(row)];
    std::memcpy(
        out.row(row), in.row(from), static_cast<size_t>(in.cols) * sizeof(float)
    );
  }
  return y;
}

Tensor CpuBackend::logits(
    const PreparedLinear& head, const Tensor& x, float scale, float softcap
) {
  Tensor y = linear(head, x, {});
  if (scale == 1.0F && !(softcap > 0)) {
    return y;
  }
  CpuTensor& out = cpu_tensor(y);
  int64_t total = out.rows * out.cols;
  auto piece = [&](int64_t begin, int64_t end) {
    float* values = out.data + begin;
    if (scale != 1.0F) {
      kernels_.row.multiply(values, scale, end - begin, values);
    }
    if (softcap > 0) {
      kernels_.row.softcap(values, softcap, end - begin);
    }
  };
  pool_.parallel_for(total, kGrainValues, piece);
  return y;
}

void CpuBackend::export_rows(const Tensor& x, std::span<float> out) {
  const CpuTensor& in = cpu_tensor(x);
  auto count = static_cast<size_t>(in.rows * in.cols);
  if (out.size() != count) {
    fail(
        ErrorCode::internal,
        fmt::format("[export] room for {} of {} values", out.size(), count)
    );
  }
  if (count > 0) {
    std::memcpy(out.data(), in.data, count * sizeof(float));
  }
}

Tensor CpuBackend::import_rows(
    std::span<const float> values, int64_t rows, int64_t cols
) {
  Tensor y = arena_.make(rows, cols);
  if (values.size() != static_cast<size_t>(rows * cols)) {
    fail(
        ErrorCode::internal,
        fmt::format("[import] {} values for {} x {}", values.size(), rows, cols)
    );
  }
  if (!values.empty()) {
    std::memcpy(
        cpu_tensor(y).data, values.data(), values.size() * sizeof(float)
    );
  }
  return y;
}

void CpuBackend::argmax(const Tensor& x, std::span<int32_t> out) {
  const CpuTensor& in = cpu_tensor(x);
  if (static_cast<int64_t>(out.size()) != in.rows || in.cols == 0) {
    fail(
        ErrorCode::internal,
        fmt::format("[argmax] {} results for {} rows", out.size(), in.rows)
    );
  }
  for_rows(in.rows, in.cols, [&](int64_t row) {
    out[static_cast<size_t>(row)] =
        static_cast<int32_t>(kernels_.row.argmax(in.row(row), in.cols));
  });
}

}  // namespace mlxcel::backend::cpu
