#include "mlxcel/backend/graph/graph_backend.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "mlxcel/backend/graph/device_copy.h"
#include "mlxcel/backend/graph/linear.h"
#include "mlxcel/backend/graph/planes.h"
#include "mlxcel/core/error.h"

namespace mlxcel::backend::graph {

namespace {

class GraphTensor final : public TensorStorage {
 public:
  explicit GraphTensor(mx::array v, StorageOwner* owner)
      : TensorStorage(owner), value(std::move(v)) {
    rows = value.shape(0);
    cols = value.shape(1);
  }
  mx::array value;
};

// Arrays count their own references, so storages come from the heap and may
// outlive the backend.
class HeapOwner final : public StorageOwner {
 public:
  void recycle(TensorStorage* storage) noexcept override {
    delete static_cast<GraphTensor*>(storage);
  }
};

[[noreturn]] void broken_step(const std::string& message) {
  fail(ErrorCode::internal, "[graph] step: " + message);
}

void check_rows(const Batch& batch) {
  if (batch.positions.size() != batch.tokens.size()) {
    broken_step(fmt::format(
        "{} positions for {} tokens",
        batch.positions.size(),
        batch.tokens.size()
    ));
  }
  int64_t next = 0;
  for (const Segment& segment : batch.segments) {
    if (segment.first != next || segment.count <= 0) {
      broken_step(fmt::format(
          "segment of {} rows at {}, expected it at {}",
          segment.count,
          segment.first,
          next
      ));
    }
    next += segment.count;
  }
  if (next != batch.rows() || next == 0) {
    broken_step(fmt::format("segments cover {} of {} rows", next, batch.rows())
    );
  }
  for (int32_t row : batch.logit_rows) {
    if (row < 0 || row >= batch.rows()) {
      broken_step(fmt::format("logit row {} of {}", row, batch.rows()));
    }
  }
}

// A segment may begin before the end of what is held (a rewind), not after.
void check_positions(const Batch& batch, GraphStatePool& pool) {
  std::unordered_map<SequenceId, int64_t> held;
  for (const Segment& segment : batch.segments) {
    auto [entry, fresh] = held.try_emplace(segment.sequence, 0);
    if (fresh) {
      entry->second = pool.sequence(segment.sequence).tokens;
    }
    if (segment.position < 0 || segment.position > entry->second) {
      broken_step(fmt::format(
          "sequence {} goes on at {} but holds {} tokens",
          segment.sequence,
          segment.position,
          entry->second
      ));
    }
    entry->second = segment.position + segment.count;
  }
}

mx::array int_array(const std::vector<int32_t>& values) {
  return mx::array(values.data(), {static_cast<int>(values.size())}, mx::int32);
}

const GraphVector* vector_of(const PreparedVector* vector) {
  const auto* result = dynamic_cast<const GraphVector*>(vector);
  if (vector != nullptr && result == nullptr) {
    fail(
        ErrorCode::internal,
        "[graph] norm: the weight was prepared by another backend"
    );
  }
  return result;
}

}  // namespace

void rethrow(const std::string& what) {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, what + ": out of memory");
  } catch (const std::system_error& error) {
    fail(
        ErrorCode::out_of_memory,
        fmt::format("{}: cannot start a thread: {}", what, error.what())
    );
  } catch (const std::exception& error) {
    std::string_view text = error.what();
    // MLX hands on what its threads throw as text.
    bool memory = text.find("allocate") != std::string_view::npos ||
                  text.find("bad_alloc") != std::string_view::npos ||
                  text.find("out of memory") != std::string_view::npos;
    fail(
        memory ? ErrorCode::out_of_memory : ErrorCode::internal,
        fmt::format("{}: {}", what, text)
    );
  }
}

Tensor wrap(mx::array value) {
  static HeapOwner owner;
  return Tensor(new GraphTensor(std::move(value), &owner));
}

const mx::array& array_of(const Tensor& tensor) {
  return static_cast<const GraphTensor*>(tensor.storage())->value;
}

GraphVector::GraphVector(mx::array value) : value_(value), cast_(value) {
  size = static_cast<int64_t>(value_.size());
}

const mx::array& GraphVector::as(mx::Dtype dtype, mx::Stream stream) const {
  if (cast_.dtype() != dtype) {
    cast_ = mx::astype(value_, dtype, stream);
  }
  return cast_;
}

GraphBackend::GraphBackend(
    std::string device, mx::Stream stream, Numerics numerics
)
    : device_(std::move(device)), stream_(stream), numerics_(numerics) {}

std::string GraphBackend::name() const {
  return "graph";
}

std::string GraphBackend::describe() const {
  return fmt::format("graph: MLX {}, {}", mx::version(), device_);
}

Numerics GraphBackend::numerics() const {
  return numerics_;
}

DeviceFacts GraphBackend::device() const {
  DeviceFacts facts;
  if (device_ == "metal") {
    facts.kind = DeviceKind::metal;
  } else if (device_ == "cuda" || (device_ == "gpu" && mx::cu::is_available())) {
    facts.kind = DeviceKind::cuda;
    const auto& info = mx::device_info(mx::Device(mx::Device::gpu));
    auto number = [&](const char* key) {
      auto found = info.find(key);
      const size_t* value =
          found == info.end() ? nullptr : std::get_if<size_t>(&found->second);
      return value == nullptr ? 0 : static_cast<int>(*value);
    };
    facts.compute_capability = 10 * number("compute_capability_major") +
                               number("compute_capability_minor");
  }
  return facts;
}

bool GraphBackend::supports(Operation operation, const WeightFormat& format)
    const {
  switch (operation) {
    case Operation::norm:
    case Operation::attend:
      return true;
    case Operation::linear:
    case Operation::embed:
    case Operation::logits:
      return is_mlx_format(format);
    case Operation::experts:
      return is_mlx_format(format) && format.bits != 1;
  }
  return false;
}

std::shared_ptr<const PreparedVector> GraphBackend::prepare_vector(
    const Weight& weight, float offset
) {
  files_.add(weight);
  std::vector<float> values = to_float(weight);
  for (float& value : values) {
    value += offset;
  }
  return std::make_shared<GraphVector>(
      mx::array(values.data(), {static_cast<int>(values.size())}, mx::float32)
  );
}

void GraphBackend::count(const LinearWeight& weight) {
  for (const Weight* plane : planes_of(weight)) {
    resident_.bytes += plane->bytes().size();
    ++resident_.tensors;
  }
}

void GraphBackend::finish_copies() {
  try {
    finish_device_copies();
  } catch (...) {
    rethrow("[graph] " + device_);
  }
}

void GraphBackend::keep(const LinearWeight& weight) {
  for (const Weight* plane : planes_of(weight)) {
    files_.add(*plane);
  }
}

Resident GraphBackend::materialize() {
  for (Pending& pending : pending_) {
    try {
      mx::eval(pending.value);
    } catch (...) {
      rethrow(pending.name);
    }
  }
  pending_.clear();
  finish_copies();
  files_.check();
  return std::exchange(resident_, {});
}

std::unique_ptr<StatePool> GraphBackend::make_pool(
    const StateLayout& layout, int64_t blocks
) {
  return std::make_unique<GraphStatePool>(
      layout, blocks, mx::size_of(activation())
  );
}

void GraphBackend::begin(const Batch& batch, StatePool& pool) {
  auto* own = dynamic_cast<GraphStatePool*>(&pool);
  if (own == nullptr) {
    broken_step("the pool belongs to another backend");
  }
  files_.throw_if_broken();
  check_rows(batch);
  check_positions(batch, *own);
  finish_copies();  // of what was prepared outside a materialisation scope
  positions_ = int_array(batch.positions);
  logit_rows_ = int_array(batch.logit_rows);
  batch_ = &batch;
  pool_ = own;
  lost_ = false;
}

void GraphBackend::end() {
  if (lost_) {
    drop_step();
    return;
  }
  const Batch& step = batch();
  std::vector<mx::array> outstanding;
  for (const Segment& segment : step.segments) {
    SequenceKv& sequence = pool_->sequence(segment.sequence);
    for (LayerKv& layer : sequence.layers) {
      if (layer.keys) {
        outstanding.push_back(*layer.keys);
        outstanding.push_back(*layer.values);
      }
    }
    sequence.tokens = segment.position + segment.count;
  }
  evaluate(std::move(outstanding), "[graph] step");
  batch_ = nullptr;
  pool_ = nullptr;
}

// A failed evaluation leaves arrays that can't be evaluated again, and a page
// that could not be read leaves wrong ones: what the step's sequences hold is
// lost.
void GraphBackend::evaluate(
    std::vector<mx::array> arrays, const std::string& what
) {
  try {
    mx::eval(std::move(arrays));
    files_.check();
  } catch (...) {
    drop_step();
    rethrow(what);
  }
}

void GraphBackend::drop_step() noexcept {
  if (batch_ != nullptr) {
    for (const Segment& segment : batch_->segments) {
      pool_->truncate(segment.sequence, 0);
    }
    batch_ = nullptr;
    pool_ = nullptr;
  }
}

const Batch& GraphBackend::batch() const {
  if (batch_ == nullptr) {
    broken_step("an operation outside begin() and end()");
  }
  return *batch_;
}

void GraphBackend::note_activation(mx::Dtype dtype) {
  activation_ = activation_ ? mx::promote_types(*activation_, dtype) : dtype;
}

mx::Dtype GraphBackend::activation() const {
  return numerics_.exact ? mx::float32 : activation_.value_or(mx::float32);
}

// The CPU kernels of MLX would sum in the 16-bit type.
bool GraphBackend::wide_products() const {
  return numerics_.exact || stream_.device == mx::Device::cpu;
}

mx::array GraphBackend::scaled(const mx::array& x, float factor) const {
  return factor == 1.0F
             ? x
             : mx::multiply(x, mx::array(factor, x.dtype()), stream_);
}

Tensor GraphBackend::norm(
    NormKind kind,
    const Tensor& x,
    const PreparedVector* weight,
    const PreparedVector* bias,
    float epsilon
) {
  const mx::array& in = array_of(x);
  auto cast = [&](const PreparedVector* vector) -> std::optional<mx::array> {
    const GraphVector* own = vector_of(vector);
    return own ? std::optional(own->as(in.dtype(), stream_)) : std::nullopt;
  };
  try {
    if (kind == NormKind::rms) {
      return wrap(mx::fast::rms_norm(in, cast(weight), epsilon, stream_));
    }
    return wrap(
        mx::fast::layer_norm(in, cast(weight), cast(bias), epsilon, stream_)
    );
  } catch (...) {
    rethrow("[graph] norm");
  }
}

Tensor GraphBackend::add(const Tensor& a, const Tensor& b) {
  try {
    return wrap(mx::add(array_of(a), array_of(b), stream_));
  } catch (...) {
    rethrow("[graph] add");
  }
}

Tensor GraphBackend::multiply(const Tensor& x, float factor) {
  return wrap(scaled(array_of(x), factor));
}

Tensor GraphBackend::reduce(const Tensor& x) {
  return x;
}

Tensor GraphBackend::select_logit_rows(const Tensor& hidden) {
  batch();
  return wrap(mx::take(array_of(hidden), *logit_rows_, 0, stream_));
}

void GraphBackend::export_rows(const Tensor& x, std::span<float> out) {
  if (out.size() != static_cast<size_t>(x.rows() * x.cols())) {
    broken_step(fmt::format(
        "export of [{}, {}] into {} values", x.rows(), x.cols(), out.size()
    ));
  }
  if (out.empty()) {
    return;
  }
  mx::array rows = mx::contiguous(
      mx::astype(array_of(x), mx::float32, stream_), false, stream_
  );
  evaluate({rows}, "[graph] export");
  std::memcpy(out.data(), rows.data<float>(), rows.nbytes());
}

Tensor GraphBackend::import_rows(
    std::span<const float> values, int64_t rows, int64_t cols
) {
  if (values.size() != static_cast<size_t>(rows * cols)) {
    broken_step(fmt::format(
        "import of {} values as [{}, {}]", values.size(), rows, cols
    ));
  }
  mx::Shape shape{
      dimension(rows, "[graph] import"), dimension(cols, "[graph] import")};
  mx::array copied(values.data(), shape, mx::float32);
  return wrap(mx::astype(copied, activation(), stream_));
}

void GraphBackend::argmax(const Tensor& x, std::span<int32_t> out) {
  if (out.size() != static_cast<size_t>(x.rows())) {
    broken_step(fmt::format("argmax of {} rows into {}", x.rows(), out.size()));
  }
  if (out.empty()) {
    return;
  }
  mx::array index = mx::astype(
      mx::argmax(array_of(x), 1, false, stream_), mx::int32, stream_
  );
  evaluate({index}, "[graph] argmax");
  std::memcpy(out.data(), index.data<int32_t>(), index.nbytes());
}

}  // namespace mlxcel::backend::graph
