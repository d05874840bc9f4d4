#include "mlxcel/weights/convert/gguf/tensor_convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "mlxcel/core/numbers.h"
#include "mlxcel/core/thread_pool.h"
#include "mlxcel/weights/affine_groups.h"

namespace mlxcel::convert {

namespace {

// What float16 scales may add to a tensor's relative error before float32
// ones are written instead.
constexpr double kScaleTolerance = 1e-3;
// Bytes of a tensor in memory at a time, and elements per task.
constexpr int64_t kChunkBytes = 16 << 20;
constexpr int64_t kTaskElements = 1 << 16;

int64_t float_size(FloatType type) {
  return type == FloatType::f32 ? 4 : 2;
}

float round_to(FloatType type, float value) {
  switch (type) {
    case FloatType::f16:
      return f16_to_float(float_to_f16(value));
    case FloatType::bf16:
      return bf16_to_float(float_to_bf16(value));
    default:
      return value;
  }
}

void store(FloatType type, float value, std::byte* to) {
  if (type == FloatType::f32) {
    std::memcpy(to, &value, sizeof(value));
    return;
  }
  uint16_t bits =
      type == FloatType::f16 ? float_to_f16(value) : float_to_bf16(value);
  std::memcpy(to, &bits, sizeof(bits));
}

bool rounds_exactly(float value, FloatType type) {
  return round_to(type, value) == value;
}

bool is_in_range(float value, FloatType type) {
  return std::isfinite(round_to(type, value));
}

bool is_quantised(const TensorPlan& plan) {
  return affine_bits(plan.source->type) != 0;
}

// The types whose groups don't always survive with 16-bit scales.
bool is_k_quant(GgmlType type) {
  return type == GgmlType::q4_k || type == GgmlType::q5_k ||
         type == GgmlType::q6_k;
}

bool is_finite_value(float value) {
  return std::isfinite(value);
}

bool is_finite(const AffineGroup& group) {
  return std::isfinite(group.scale) && std::isfinite(group.bias);
}

// Decodes a row's blocks one after another into groups as they are written,
// with scales and biases of `type`. `take(index, group, values)` gets each,
// with the source's values where they may differ, else null. False if the row
// holds a value that isn't finite.
template <typename F>
bool each_group(
    GgmlType source,
    const std::byte* row,
    int64_t columns,
    FloatType type,
    F&& take
) {
  const BlockLayout& layout = block_layout(source);
  AffineGroup groups[8];
  float values[256];
  bool exact = is_affine(source);
  int64_t in_block = layout.elements / kGroup;
  for (int64_t block = 0; block < columns / layout.elements; ++block) {
    const std::byte* from = row + block * layout.bytes;
    if (exact) {
      decode_groups(source, from, groups);
    } else {
      dequantize(source, from, layout.elements, values);
    }
    for (int64_t i = 0; i < in_block; ++i) {
      AffineGroup& group = groups[i];
      float* original = values + i * kGroup;
      bool same = false;
      if (!exact) {
        if (!std::all_of(original, original + kGroup, is_finite_value)) {
          return false;
        }
        fit_group(original, type == FloatType::f16, group);
      } else if (!is_finite(group)) {
        return false;
      } else {
        same = rounds_exactly(group.scale, type) &&
               rounds_exactly(group.bias, type);
      }
      if (exact && !same) {
        expand(group, original);
        group.scale = round_to(type, group.scale);
        group.bias = round_to(type, group.bias);
      }
      take(block * in_block + i, group, same ? nullptr : original);
    }
  }
  return true;
}

// Adds a group's squares; `values` null: it is what the source holds.
void add_squares(
    const AffineGroup& group, const float* values, ErrorSums& sums
) {
  float written[kGroup];
  expand(group, written);
  for (int64_t j = 0; j < kGroup; ++j) {
    double value = values != nullptr ? values[j] : written[j];
    sums.value += value * value;
    sums.error += (written[j] - value) * (written[j] - value);
  }
}

double relative(const ErrorSums& sums) {
  return sums.value > 0 ? std::sqrt(sums.error / sums.value) : 0;
}

}  // namespace

const char* float_type_name(FloatType type) {
  switch (type) {
    case FloatType::f16:
      return "F16";
    case FloatType::bf16:
      return "BF16";
    default:
      return "F32";
  }
}

const std::byte* TensorConverter::source_row(
    const TensorPlan& plan, int64_t row
) const {
  const BlockLayout& layout = block_layout(plan.source->type);
  int64_t bytes = plan.columns() / layout.elements * layout.bytes;
  return gguf_.data(*plan.source) + plan.source_row(row) * bytes;
}

void TensorConverter::reject_row(const TensorPlan& plan, int64_t row) const {
  gguf_.reject(
      "tensor " + quote(plan.source->name),
      fmt::format("row {} holds a value that is not finite", row)
  );
}

// Calls row_sums(row, sums) for each row on all threads and adds the sums up
// in order; it returns false for a row with a value that isn't finite.
template <typename F>
ErrorSums TensorConverter::over_rows(
    const TensorPlan& plan, int64_t from, int64_t to, F&& row_sums
) const {
  std::vector<ErrorSums> sums(static_cast<size_t>(to - from));
  std::atomic<int64_t> bad = -1;
  int64_t grain = std::max<int64_t>(1, kTaskElements / plan.columns());
  ThreadPool::instance()
      .parallel_for(to - from, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          if (!row_sums(from + i, sums[static_cast<size_t>(i)])) {
            bad = from + i;
          }
        }
      });
  if (bad >= 0) {
    reject_row(plan, plan.source_row(bad));
  }
  ErrorSums total;
  for (const ErrorSums& part : sums) {
    total.error += part.error;
    total.value += part.value;
  }
  return total;
}

bool TensorConverter::all_values(
    const TensorPlan& plan,
    bool (*holds)(float value, FloatType type),
    FloatType type
) const {
  std::atomic<bool> all = true;
  int64_t columns = plan.columns();
  over_rows(plan, 0, plan.rows, [&](int64_t row, ErrorSums&) {
    const BlockLayout& layout = block_layout(plan.source->type);
    const std::byte* from = source_row(plan, row);
    float values[256];
    for (int64_t at = 0; at < columns; at += layout.elements) {
      dequantize(plan.source->type, from, layout.elements, values);
      from += layout.bytes;
      for (int64_t j = 0; j < layout.elements; ++j) {
        float value = plan.subtract_one ? values[j] - 1 : values[j];
        if (!std::isfinite(value)) {
          return false;
        }
        if (!holds(value, type)) {
          all = false;
        }
      }
    }
    return true;
  });
  return all;
}

ErrorSums TensorConverter::scan_affine(const TensorPlan& plan, FloatType type)
    const {
  return over_rows(plan, 0, plan.rows, [&](int64_t row, ErrorSums& sums) {
    return each_group(
        plan.source->type,
        source_row(plan, row),
        plan.columns(),
        type,
        [&](int64_t, const AffineGroup& group, const float* values) {
          add_squares(group, values, sums);
        }
    );
  });
}

// float16 unless that loses something where float32 does not.
FloatType TensorConverter::scales_type(const TensorPlan& plan) const {
  GgmlType source = plan.source->type;
  if (!is_k_quant(source)) {
    std::atomic<bool> exact = true;
    over_rows(plan, 0, plan.rows, [&](int64_t row, ErrorSums&) {
      return each_group(
          source,
          source_row(plan, row),
          plan.columns(),
          FloatType::f16,
          [&](int64_t, const AffineGroup&, const float* values) {
            if (values != nullptr) {
              exact = false;
            }
          }
      );
    });
    return exact ? FloatType::f16 : FloatType::f32;
  }
  double half = relative(scan_affine(plan, FloatType::f16));
  if (half <= kScaleTolerance) {
    return FloatType::f16;
  }
  double full = relative(scan_affine(plan, FloatType::f32));
  return half <= full + kScaleTolerance ? FloatType::f16 : FloatType::f32;
}

void TensorConverter::choose_activation_type() {
  bool half = false;
  bool brain = false;
  for (const TensorPlan& plan : plan_.tensors) {
    bool matrix = plan.source->shape.size() > 1;
    half = half || is_quantised(plan) ||
           (matrix && plan.source->type == GgmlType::f16);
    brain = brain || (matrix && plan.source->type == GgmlType::bf16);
  }
  activation_ = half    ? FloatType::f16
                : brain ? FloatType::bf16
                        : FloatType::f32;
}

TensorTarget TensorConverter::choose_target(const TensorPlan& plan, bool dense)
    const {
  switch (plan.source->type) {
    case GgmlType::f16:
      return {0, FloatType::f16};
    case GgmlType::bf16:
      return {0, FloatType::bf16};
    case GgmlType::f32:
      return {0, FloatType::f32};
    default:
      break;
  }
  if (dense) {
    bool fits = all_values(plan, is_in_range, FloatType::f16);
    return {0, fits ? FloatType::f16 : FloatType::f32};
  }
  return {affine_bits(plan.source->type), scales_type(plan)};
}

TensorConverter::TensorConverter(
    const GgufFile& gguf, const ModelPlan& plan, bool dense
)
    : gguf_(gguf), plan_(plan) {
  choose_activation_type();
  // F32 tensors, mostly norms, are narrowed all or none, so that a model's
  // activations keep one type.
  bool narrow = activation_ != FloatType::f32;
  for (const TensorPlan& tensor : plan_.tensors) {
    targets_.push_back(choose_target(tensor, dense));
    if (tensor.source->type == GgmlType::f32) {
      narrow = all_values(tensor, rounds_exactly, activation_) && narrow;
    }
  }
  for (size_t i = 0; narrow && i < targets_.size(); ++i) {
    if (plan_.tensors[i].source->type == GgmlType::f32) {
      targets_[i].type = activation_;
    }
  }
}

std::vector<OutputTensor> TensorConverter::entries(size_t index) const {
  const TensorPlan& plan = plan_.tensors[index];
  const TensorTarget& target = targets_[index];
  const char* type = float_type_name(target.type);
  int64_t columns = plan.columns();
  auto bytes = [&](int64_t per_row) {
    return static_cast<uint64_t>(plan.rows) * static_cast<uint64_t>(per_row);
  };
  if (target.bits == 0) {
    std::vector<int64_t> shape = {plan.rows};
    if (plan.source->shape.size() > 1) {
      shape.push_back(columns);
    }
    return {{plan.name, type, shape, bytes(columns * float_size(target.type))}};
  }
  std::string module = plan.name.substr(0, plan.name.rfind('.'));
  int64_t words = columns * target.bits / 32;
  int64_t groups = columns / kGroup;
  uint64_t side = bytes(groups * float_size(target.type));
  return {
      {plan.name, "U32", {plan.rows, words}, bytes(words * 4)},
      {module + ".scales", type, {plan.rows, groups}, side},
      {module + ".biases", type, {plan.rows, groups}, side},
  };
}

ErrorSums TensorConverter::write(size_t index, SafetensorsWriter& writer)
    const {
  const TensorPlan& plan = plan_.tensors[index];
  const TensorTarget& target = targets_[index];
  return target.bits == 0 ? write_dense(plan, target.type, writer)
                          : write_affine(plan, target.type, writer);
}

ErrorSums TensorConverter::write_dense(
    const TensorPlan& plan, FloatType type, SafetensorsWriter& writer
) const {
  int64_t columns = plan.columns();
  int64_t width = float_size(type);
  const BlockLayout& layout = block_layout(plan.source->type);
  int64_t chunk = std::max<int64_t>(1, kChunkBytes / (columns * width));
  std::vector<std::byte> buffer;
  ErrorSums total;
  for (int64_t first = 0; first < plan.rows; first += chunk) {
    int64_t last = std::min(plan.rows, first + chunk);
    buffer.resize(static_cast<size_t>((last - first) * columns * width));
    auto convert_row = [&](int64_t row, ErrorSums& sums) {
      const std::byte* from = source_row(plan, row);
      std::byte* to = buffer.data() + (row - first) * columns * width;
      float values[256];
      for (int64_t at = 0; at < columns; at += layout.elements) {
        dequantize(plan.source->type, from, layout.elements, values);
        from += layout.bytes;
        for (int64_t j = 0; j < layout.elements; ++j) {
          float value = plan.subtract_one ? values[j] - 1 : values[j];
          if (!std::isfinite(value)) {
            return false;
          }
          store(type, value, to);
          to += width;
          double error = round_to(type, value) - value;
          sums.value += static_cast<double>(value) * value;
          sums.error += error * error;
        }
      }
      return true;
    };
    ErrorSums part = over_rows(plan, first, last, convert_row);
    total.error += part.error;
    total.value += part.value;
    writer.write(buffer.data(), buffer.size());
  }
  return total;
}

ErrorSums TensorConverter::write_affine(
    const TensorPlan& plan, FloatType type, SafetensorsWriter& writer
) const {
  int64_t columns = plan.columns();
  int bits = affine_bits(plan.source->type);
  int64_t group_bytes = bits * kGroup / 8;
  int64_t groups = columns / kGroup;
  int64_t width = float_size(type);
  int64_t packed = std::max<int64_t>(1, groups * group_bytes);  // of a row
  int64_t chunk = std::max<int64_t>(1, kChunkBytes / packed);
  std::vector<std::byte> codes;
  std::vector<std::byte> scales(static_cast<size_t>(plan.rows * groups * width)
  );
  std::vector<std::byte> biases(scales.size());
  ErrorSums total;
  for (int64_t first = 0; first < plan.rows; first += chunk) {
    int64_t last = std::min(plan.rows, first + chunk);
    codes.resize(static_cast<size_t>((last - first) * groups * group_bytes));
    auto convert_row = [&](int64_t row, ErrorSums& sums) {
      std::byte* to = codes.data() + (row - first) * groups * group_bytes;
      int64_t side = row * groups * width;
      auto take = [&](int64_t i, const AffineGroup& group, const float* values
                  ) {
        pack_codes(group.codes, bits, to + i * group_bytes);
        store(type, group.scale, scales.data() + side + i * width);
        store(type, group.bias, biases.data() + side + i * width);
        if (is_k_quant(plan.source->type)) {
          add_squares(group, values, sums);
        }
      };
      return each_group(
          plan.source->type, source_row(plan, row), columns, type, take
      );
    };
    ErrorSums part = over_rows(plan, first, last, convert_row);
    total.error += part.error;
    total.value += part.value;
    writer.write(codes.data(), codes.size());
  }
  writer.write(scales.data(), scales.size());
  writer.write(biases.data(), biases.size());
  return total;
}

}  // namespace mlxcel::convert
