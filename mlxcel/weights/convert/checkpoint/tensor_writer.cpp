#include "mlxcel/weights/convert/checkpoint/tensor_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <exception>
#include <mutex>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/thread_pool.h"
#include "mlxcel/weights/affine_groups.h"
#include "mlxcel/weights/matrix_rows.h"
#include "mlxcel/weights/small_floats.h"

namespace mlxcel::convert {

namespace {

// Elements of one task, and between two reports of progress.
constexpr int64_t kTaskElements = 1 << 18;
constexpr int64_t kStepElements = 1 << 25;

// E2M1's 6 times E4M3's 448. MLX makes zeros of what is far above it.
constexpr float kLargestNvfp4 = 2688.0F;

uint16_t to_half(DType type, float value) {
  return type == DType::f16 ? float_to_f16(value) : float_to_bf16(value);
}

float from_half(DType type, uint16_t bits) {
  return type == DType::f16 ? f16_to_float(bits) : bf16_to_float(bits);
}

// Rounds to the type in place and stores the result.
void store_floats(DType type, float* values, int64_t count, std::byte* to) {
  if (type == DType::f32) {
    std::memcpy(to, values, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits = to_half(type, values[i]);
    std::memcpy(to + 2 * i, &bits, sizeof(bits));
    values[i] = from_half(type, bits);
  }
}

void round_floats(DType type, float* values, int64_t count) {
  if (type == DType::f32) {
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    values[i] = from_half(type, to_half(type, values[i]));
  }
}

bool all_finite(const float* values, int64_t count) {
  int32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    int32_t bits = std::bit_cast<int32_t>(values[i]) & 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  return largest < 0x7f800000;
}

float largest_magnitude(const std::vector<float>& values) {
  float largest = 0;
  for (float value : values) {
    largest = std::max(largest, std::fabs(value));
  }
  return largest;
}

// In lanes of float, which are summed up to double after each 256 values.
void add_error(
    const float* source, const float* written, int64_t count, TensorError& sums
) {
  constexpr int kLanes = 16;
  constexpr int64_t kBlock = 256;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    int64_t end = std::min(begin + kBlock, count);
    float error[kLanes] = {};
    float value[kLanes] = {};
    float worst[kLanes] = {};
    float largest[kLanes] = {};
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int j = 0; j < kLanes; ++j) {
        float x = source[i + j];
        float e = written[i + j] - x;
        error[j] += e * e;
        value[j] += x * x;
        e = std::fabs(e);
        x = std::fabs(x);
        worst[j] = e > worst[j] ? e : worst[j];
        largest[j] = x > largest[j] ? x : largest[j];
      }
    }
    for (; i < end; ++i) {
      float e = written[i] - source[i];
      error[0] += e * e;
      value[0] += source[i] * source[i];
      worst[0] = std::max(worst[0], std::fabs(e));
      largest[0] = std::max(largest[0], std::fabs(source[i]));
    }
    for (int j = 0; j < kLanes; ++j) {
      sums.error += error[j];
      sums.value += value[j];
      sums.largest_error = std::max(sums.largest_error, worst[j]);
      sums.largest_value = std::max(sums.largest_value, largest[j]);
    }
  }
}

/// What becomes of the rows of one part.
enum class Route { copy, same_codes, dense, quantize };

Route route_of(const PlannedTensor& tensor) {
  WeightFormat source = tensor.source_format();
  const WeightFormat& target = tensor.target;
  if (source == target) {
    return tensor.folds_scale ? Route::quantize : Route::copy;
  }
  if (target.mode == QuantMode::dense) {
    return Route::dense;
  }
  bool widths = source.mode == target.mode && source.bits == target.bits &&
                source.group == target.group;
  return widths && target.mode == QuantMode::affine ? Route::same_codes
                                                    : Route::quantize;
}

/// Buffers of one thread.
struct Scratch {
  std::vector<float> source;
  std::vector<float> values;
  std::vector<float> scales;
  std::vector<float> biases;
  std::vector<uint8_t> codes;
  std::vector<std::byte> planes[3];
};

class PartWriter {
 public:
  PartWriter(
      const PlannedTensor& tensor,
      const LinearWeight& part,
      int64_t first_row,
      size_t first_output,
      SafetensorsWriter& writer
  )
      : tensor_(tensor),
        rows_(part),
        first_row_(first_row),
        first_output_(first_output),
        writer_(writer),
        route_(route_of(tensor)),
        cols_(part.cols),
        groups_(
            tensor.target.mode == QuantMode::dense
                ? 0
                : part.cols / tensor.target.group
        ) {}

  // Rows [begin, end) on this thread.
  void run(int64_t begin, int64_t end, TensorError& sums) const {
    if (route_ == Route::copy) {
      copy(begin, end);
      return;
    }
    static thread_local Scratch scratch;
    prepare(scratch, end - begin);
    for (int64_t row = begin; row < end; ++row) {
      rows_.read(row, scratch.source.data());
      convert_row(row, row - begin, scratch, sums);
    }
    for (size_t plane = 0; plane < planes(); ++plane) {
      write(plane, begin, scratch.planes[plane]);
    }
  }

  void release(int64_t begin, int64_t end) const {
    rows_.release(begin, end);
  }

 private:
  size_t planes() const {
    return tensor_.target.mode == QuantMode::dense    ? 1
           : tensor_.target.mode == QuantMode::affine ? 3
                                                      : 2;
  }
  int64_t plane_row(size_t plane) const {
    const WeightFormat& f = tensor_.target;
    if (f.mode == QuantMode::dense) {
      return cols_ * dtype_size(f.dtype);
    }
    return plane == 0 ? cols_ * f.bits / 8 : groups_ * dtype_size(f.dtype);
  }

  void write(size_t plane, int64_t row, std::span<const std::byte> bytes)
      const {
    auto offset = static_cast<uint64_t>((first_row_ + row) * plane_row(plane));
    writer_.write_at(first_output_ + plane, offset, bytes.data(), bytes.size());
  }

  void copy(int64_t begin, int64_t end) const {
    write(0, begin, rows_.code_bytes(begin, end));
    if (planes() > 1) {
      write(1, begin, rows_.scale_bytes(begin, end));
    }
    if (planes() > 2) {
      write(2, begin, rows_.bias_bytes(begin, end));
    }
  }

  void prepare(Scratch& scratch, int64_t rows) const {
    auto cols = static_cast<size_t>(cols_);
    scratch.source.resize(cols);
    scratch.values.resize(cols);
    scratch.codes.resize(cols);
    scratch.scales.resize(static_cast<size_t>(groups_));
    scratch.biases.resize(static_cast<size_t>(groups_));
    for (size_t plane = 0; plane < planes(); ++plane) {
      scratch.planes[plane].resize(static_cast<size_t>(rows * plane_row(plane))
      );
    }
  }

  void convert_row(int64_t row, int64_t at, Scratch& scratch, TensorError& sums)
      const {
    std::byte* to = scratch.planes[0].data() + at * plane_row(0);
    float* values = scratch.values.data();
    std::copy(scratch.source.begin(), scratch.source.end(), values);
    if (route_ == Route::dense) {
      bool finite = all_finite(values, cols_);
      store_floats(tensor_.target.dtype, values, cols_, to);
      if (finite && !all_finite(values, cols_)) {
        reject(row, "holds a value that does not fit " + type_name());
      }
      add_error(scratch.source.data(), values, cols_, sums);
      return;
    }
    if (!all_finite(values, cols_)) {
      reject(row, "holds a value that is not finite");
    }
    if (route_ == Route::same_codes) {
      same_codes(row, at, scratch, to);
    } else {
      if (tensor_.source_format().mode != QuantMode::dense ||
          tensor_.source_format().dtype != tensor_.value_type) {
        round_floats(tensor_.value_type, values, cols_);
        if (!all_finite(values, cols_)) {
          reject(row, "holds a value that does not fit " + type_name());
        }
      }
      quantize_row(row, at, scratch, to);
    }
    add_error(scratch.source.data(), values, cols_, sums);
  }

  void same_codes(int64_t row, int64_t at, Scratch& scratch, std::byte* to)
      const {
    auto bytes = rows_.code_bytes(row, row + 1);
    std::memcpy(to, bytes.data(), bytes.size());
    rows_.read_codes(row, scratch.codes.data());
    read_floats(rows_.scale_bytes(row, row + 1), scratch.scales);
    read_floats(rows_.bias_bytes(row, row + 1), scratch.biases);
    store_affine(row, at, scratch);
  }

  void read_floats(std::span<const std::byte> bytes, std::vector<float>& out)
      const {
    DType type = tensor_.source_format().dtype;
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = type == DType::f32
                   ? load_le<float>(bytes.data() + 4 * i)
                   : from_half(type, load_le<uint16_t>(bytes.data() + 2 * i));
    }
  }

  void quantize_row(int64_t row, int64_t at, Scratch& scratch, std::byte* to)
      const {
    const WeightFormat& target = tensor_.target;
    if (target.mode == QuantMode::affine) {
      quantize_affine_groups(
          scratch.values,
          target.bits,
          target.group,
          to,
          scratch.scales.data(),
          scratch.biases.data(),
          scratch.codes.data()
      );
      store_affine(row, at, scratch);
      return;
    }
    if (target.mode == QuantMode::nvfp4 &&
        largest_magnitude(scratch.values) > kLargestNvfp4) {
      reject(row, "holds a value above 2688, the largest of nvfp4");
    }
    auto quantize = target.mode == QuantMode::mxfp4   ? quantize_mxfp4
                    : target.mode == QuantMode::mxfp8 ? quantize_mxfp8
                                                      : quantize_nvfp4;
    std::byte* scales = scratch.planes[1].data() + at * plane_row(1);
    quantize(scratch.values, to, scales, tensor_.value_type);
    decode_blocks(to, scales, scratch);
  }

  // Rounds scales and biases, and gives the values that they make.
  void store_affine(int64_t row, int64_t at, Scratch& scratch) const {
    float* scales = scratch.scales.data();
    float* biases = scratch.biases.data();
    store_floats(
        tensor_.target.dtype,
        scales,
        groups_,
        scratch.planes[1].data() + at * plane_row(1)
    );
    store_floats(
        tensor_.target.dtype,
        biases,
        groups_,
        scratch.planes[2].data() + at * plane_row(2)
    );
    if (!all_finite(scales, groups_) || !all_finite(biases, groups_)) {
      reject(row, "spans more than scales and biases of its type can hold");
    }
    int64_t group = tensor_.target.group;
    const uint8_t* codes = scratch.codes.data();
    float* values = scratch.values.data();
    for (int64_t g = 0; g < groups_; ++g) {
      for (int64_t i = 0; i < group; ++i) {
        values[i] = scales[g] * static_cast<float>(codes[i]) + biases[g];
      }
      values += group;
      codes += group;
    }
  }

  void decode_blocks(
      const std::byte* packed, const std::byte* scales, Scratch& scratch
  ) const {
    const WeightFormat& target = tensor_.target;
    const auto& scale_table =
        target.mode == QuantMode::nvfp4 ? e4m3_values() : e8m0_values();
    std::span<const float> table = e4m3_values();
    if (target.bits == 4) {
      table = e2m1_values();
    }
    unpack_codes(packed, target.bits, cols_, scratch.codes.data());
    for (int64_t i = 0; i < cols_; ++i) {
      float scale = scale_table[static_cast<uint8_t>(scales[i / target.group])];
      scratch.values[static_cast<size_t>(i)] =
          table[scratch.codes[static_cast<size_t>(i)]] * scale;
    }
  }

  std::string type_name() const {
    return std::string(dtype_name(tensor_.value_type));
  }

  [[noreturn]] void reject(int64_t row, const std::string& why) const {
    fail(
        ErrorCode::invalid_input,
        fmt::format(
            "[convert] {}: row {} {} (in {})",
            rows_.weight().path + ".weight",
            row,
            why,
            rows_.weight().codes.source->origin()
        )
    );
  }

  const PlannedTensor& tensor_;
  MatrixRows rows_;
  int64_t first_row_;
  size_t first_output_;
  SafetensorsWriter& writer_;
  Route route_;
  int64_t cols_;
  int64_t groups_;
};

/// The first exception of a parallel region, thrown after it.
class Failure {
 public:
  template <typename F>
  void guard(F&& f) {
    if (failed_.load(std::memory_order_relaxed)) {
      return;
    }
    try {
      f();
    } catch (...) {
      std::lock_guard lock(mutex_);
      error_ = error_ ? error_ : std::current_exception();
      failed_ = true;
    }
  }
  void check() const {
    if (error_) {
      std::rethrow_exception(error_);
    }
  }

 private:
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::exception_ptr error_;
};

void check_read(const WeightSource& source) {
  if (source.faulted()) {
    fail(
        ErrorCode::io,
        fmt::format(
            "[convert] {}: changed or failed while it was read", source.origin()
        )
    );
  }
}

// Sums are added up in the order of the rows, so that they are the same
// whatever the threads did.
TensorError write_part(
    const PartWriter& part,
    const LinearWeight& weight,
    const std::function<void(uint64_t bytes)>& progress
) {
  int64_t grain = std::max<int64_t>(1, kTaskElements / weight.cols);
  int64_t step =
      std::max<int64_t>(1, kStepElements / (weight.cols * grain)) * grain;
  auto row_bytes = static_cast<uint64_t>(weight.format.row_bytes(weight.cols));
  TensorError total;
  for (int64_t begin = 0; begin < weight.rows; begin += step) {
    int64_t end = std::min(begin + step, weight.rows);
    int64_t tasks = ceil_div(end - begin, grain);
    std::vector<TensorError> sums(static_cast<size_t>(tasks));
    Failure failure;
    ThreadPool::instance()
        .parallel_for(tasks, 1, [&](int64_t first, int64_t last) {
          for (int64_t task = first; task < last; ++task) {
            int64_t from = begin + task * grain;
            failure.guard([&] {
              part.run(
                  from,
                  std::min(from + grain, end),
                  sums[static_cast<size_t>(task)]
              );
            });
          }
        });
    failure.check();
    for (const TensorError& sum : sums) {
      total.add(sum);
    }
    check_read(*weight.codes.source);
    part.release(begin, end);
    progress(static_cast<uint64_t>(end - begin) * row_bytes);
  }
  return total;
}

}  // namespace

void TensorError::add(const TensorError& other) {
  error += other.error;
  value += other.value;
  largest_error = std::max(largest_error, other.largest_error);
  largest_value = std::max(largest_value, other.largest_value);
}

double TensorError::relative_rms() const {
  return value > 0 ? std::sqrt(error / value) : 0;
}

std::vector<OutputTensor> output_tensors(const PlannedTensor& tensor) {
  std::vector<OutputTensor> outputs;
  auto put = [&](std::string name, DType dtype, std::vector<int64_t> shape) {
    uint64_t bytes = checked_product(shape).value_or(0) *
                     static_cast<uint64_t>(dtype_size(dtype));
    outputs.push_back(
        {std::move(name),
         std::string(dtype_name(dtype)),
         std::move(shape),
         bytes}
    );
  };
  if (tensor.parts.empty()) {
    put(tensor.name, tensor.raw.dtype, tensor.shape);
    return outputs;
  }
  const WeightFormat& target = tensor.target;
  if (target.mode == QuantMode::dense) {
    put(tensor.name, target.dtype, tensor.shape);
    return outputs;
  }
  std::vector<int64_t> codes = tensor.shape;
  codes.back() = tensor.cols() * target.bits / 32;
  std::vector<int64_t> scales = tensor.shape;
  scales.back() = tensor.cols() / target.group;
  put(tensor.name, DType::u32, codes);
  put(tensor.path() + ".scales", target.dtype, scales);
  if (target.mode == QuantMode::affine) {
    put(tensor.path() + ".biases", target.dtype, scales);
  }
  return outputs;
}

TensorError write_tensor(
    const PlannedTensor& tensor,
    size_t first,
    SafetensorsWriter& writer,
    const std::function<void(uint64_t bytes)>& progress
) {
  TensorError total;
  if (tensor.parts.empty()) {
    auto bytes = tensor.raw.bytes();
    writer.write_at(first, 0, bytes.data(), bytes.size());
    check_read(*tensor.raw.source);
    progress(bytes.size());
    return total;
  }
  int64_t row = 0;
  for (const LinearWeight& part : tensor.parts) {
    PartWriter rows(tensor, part, row, first, writer);
    total.add(write_part(rows, part, progress));
    row += part.rows;
  }
  return total;
}

}  // namespace mlxcel::convert
