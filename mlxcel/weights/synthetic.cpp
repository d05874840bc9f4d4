#include "mlxcel/weights/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/thread_pool.h"
#include "mlxcel/weights/quantization.h"
#include "mlxcel/weights/safetensors_writer.h"
#include "mlxcel/weights/small_floats.h"

namespace mlxcel {

namespace {

// Elements made before they are written, and the share of one thread.
constexpr int64_t kBatch = 1 << 22;
constexpr int64_t kPiece = 1 << 16;

// FNV-1a, 64 bits, over the name and then the seed's bytes, low byte first.
uint64_t stream_key(std::string_view name, uint64_t seed) {
  uint64_t hash = 0xcbf29ce484222325u;
  auto add = [&](uint64_t byte) { hash = (hash ^ byte) * 0x100000001b3u; };
  for (char c : name) {
    add(static_cast<unsigned char>(c));
  }
  for (int i = 0; i < 8; ++i) {
    add((seed >> (8 * i)) & 0xff);
  }
  return hash;
}

// Output `index` of the SplitMix64 generator started at `key` (Steele, Lea,
// Flood 2014, "Fast splittable pseudorandom number generators").
uint64_t random_word(uint64_t key, uint64_t index) {
  uint64_t z = key + (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Each word gives four elements, low 16 bits first. Cutting the value to
// bfloat16 goes towards zero, so the upper end stays open.
float element(uint64_t word, int lane, const SyntheticRange& range) {
  int32_t k = static_cast<int32_t>((word >> (16 * lane)) & 0xffff) - 32768;
  float u = static_cast<float>(k) * 0x1p-15f;
  float value = range.centre + range.scale * u;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xffff0000u);
}

// Elements [first, first + out.size()).
void fill_from(
    uint64_t key,
    const SyntheticRange& range,
    uint64_t first,
    std::span<float> out
) {
  size_t i = 0;
  while (i < out.size()) {
    uint64_t at = first + i;
    uint64_t word = random_word(key, at / 4);
    if (at % 4 == 0 && i + 4 <= out.size()) {
      for (int lane = 0; lane < 4; ++lane) {
        out[i + static_cast<size_t>(lane)] = element(word, lane, range);
      }
      i += 4;
    } else {
      out[i++] = element(word, static_cast<int>(at % 4), range);
    }
  }
}

void store(std::span<const float> values, DType dtype, std::byte* to) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::f32) {
      std::memcpy(to + 4 * i, &values[i], 4);
    } else {
      uint16_t half = dtype == DType::f16 ? float_to_f16(values[i])
                                          : float_to_bf16(values[i]);
      std::memcpy(to + 2 * i, &half, 2);
    }
  }
}

struct Matrix {
  int64_t rows;
  int64_t cols;
};

Matrix as_matrix(const TensorSpec& tensor) {
  auto elements = checked_product(tensor.shape);
  if (!elements || *elements > (uint64_t{1} << 48)) {
    fail(
        ErrorCode::invalid_input,
        fmt::format("[synthetic] {}: the shape is too large", tensor.name)
    );
  }
  int64_t cols = tensor.shape.empty() ? 1 : tensor.shape.back();
  int64_t rows = cols == 0 ? 0 : static_cast<int64_t>(*elements) / cols;
  return {rows, cols};
}

constexpr std::string_view kWeight = ".weight";

bool is_quantized(const TensorSpec& tensor, const SyntheticOptions& options) {
  return options.bits > 0 && tensor.role == TensorRole::matrix &&
         tensor.shape.size() >= 2 && tensor.name.ends_with(kWeight) &&
         tensor.shape.back() % options.group == 0;
}

std::vector<OutputTensor> list_outputs(
    const TensorTable& table, const SyntheticOptions& options
) {
  std::vector<OutputTensor> outputs;
  std::string dtype(dtype_name(options.dtype));
  auto size = static_cast<uint64_t>(dtype_size(options.dtype));
  for (const TensorSpec& tensor : table) {
    if (tensor.role == TensorRole::unused) {
      continue;
    }
    auto [rows, cols] = as_matrix(tensor);
    auto elements = static_cast<uint64_t>(rows * cols);
    if (!is_quantized(tensor, options)) {
      outputs.push_back({tensor.name, dtype, tensor.shape, elements * size});
      continue;
    }
    std::string path =
        tensor.name.substr(0, tensor.name.size() - kWeight.size());
    std::vector<int64_t> codes = tensor.shape;
    codes.back() = cols * options.bits / 32;
    std::vector<int64_t> scales = tensor.shape;
    scales.back() = cols / options.group;
    uint64_t code_bytes = elements * static_cast<uint64_t>(options.bits) / 8;
    uint64_t scale_bytes =
        elements / static_cast<uint64_t>(options.group) * size;
    outputs.push_back({tensor.name, "U32", codes, code_bytes});
    if (options.mode != QuantMode::affine) {
      outputs.push_back(
          {path + ".scales",
           "U8",
           scales,
           elements / static_cast<uint64_t>(options.group)}
      );
      continue;
    }
    outputs.push_back({path + ".scales", dtype, scales, scale_bytes});
    outputs.push_back({path + ".biases", dtype, scales, scale_bytes});
  }
  return outputs;
}

/// Makes one tensor in batches and hands its planes to the writer.
class TensorMaker {
 public:
  TensorMaker(
      const TensorSpec& tensor,
      const SyntheticOptions& options,
      SafetensorsWriter& writer
  )
      : options_(options),
        writer_(writer),
        key_(stream_key(tensor.name, options.seed)),
        range_(synthetic_range(tensor)) {
    auto [rows, cols] = as_matrix(tensor);
    elements_ = rows * cols;
  }

  void write_dense() {
    int64_t size = dtype_size(options_.dtype);
    std::vector<std::byte> bytes;
    for (int64_t first = 0; first < elements_; first += kBatch) {
      int64_t count = std::min(kBatch, elements_ - first);
      bytes.resize(static_cast<size_t>(count * size));
      in_pieces(first, count, [&](std::span<const float> values, int64_t at) {
        store(values, options_.dtype, bytes.data() + (at - first) * size);
      });
      writer_.write(bytes.data(), bytes.size());
    }
  }

  // Codes and scales of small floats.
  void write_blocks() {
    auto quantize = options_.mode == QuantMode::mxfp4   ? quantize_mxfp4
                    : options_.mode == QuantMode::mxfp8 ? quantize_mxfp8
                                                        : quantize_nvfp4;
    std::vector<std::byte> scales(
        static_cast<size_t>(elements_ / options_.group)
    );
    std::vector<std::byte> codes;
    for (int64_t first = 0; first < elements_; first += kBatch) {
      int64_t count = std::min(kBatch, elements_ - first);
      codes.resize(static_cast<size_t>(count * options_.bits / 8));
      in_pieces(first, count, [&](std::span<const float> values, int64_t at) {
        quantize(
            values,
            codes.data() + (at - first) * options_.bits / 8,
            scales.data() + at / options_.group,
            options_.dtype
        );
      });
      writer_.write(codes.data(), codes.size());
    }
    writer_.write(scales.data(), scales.size());
  }

  void write_quantized() {
    if (options_.mode != QuantMode::affine) {
      write_blocks();
      return;
    }
    int64_t group = options_.group;
    std::vector<float> scales(static_cast<size_t>(elements_ / group));
    std::vector<float> biases(scales.size());
    std::vector<uint32_t> codes;
    for (int64_t first = 0; first < elements_; first += kBatch) {
      int64_t count = std::min(kBatch, elements_ - first);
      codes.resize(static_cast<size_t>(count / 32 * options_.bits));
      in_pieces(first, count, [&](std::span<const float> values, int64_t at) {
        quantize_affine_into(
            values,
            options_.bits,
            options_.group,
            codes.data() + (at - first) / 32 * options_.bits,
            scales.data() + at / group,
            biases.data() + at / group
        );
      });
      writer_.write(codes.data(), codes.size() * sizeof(uint32_t));
    }
    write_floats(scales);
    write_floats(biases);
  }

 private:
  // Pieces start at multiples of kPiece, hence on whole groups.
  template <typename F>
  void in_pieces(int64_t first, int64_t count, F&& use) {
    int64_t pieces = ceil_div(count, kPiece);
    ThreadPool::instance()
        .parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
          static thread_local float buffer[kPiece];
          for (int64_t piece = begin; piece < end; ++piece) {
            int64_t at = first + piece * kPiece;
            int64_t size = std::min(kPiece, first + count - at);
            std::span<float> values(buffer, static_cast<size_t>(size));
            fill_from(key_, range_, static_cast<uint64_t>(at), values);
            use(values, at);
          }
        });
  }

  void write_floats(const std::vector<float>& values) {
    std::vector<std::byte> bytes(
        values.size() * static_cast<size_t>(dtype_size(options_.dtype))
    );
    store(values, options_.dtype, bytes.data());
    writer_.write(bytes.data(), bytes.size());
  }

  const SyntheticOptions& options_;
  SafetensorsWriter& writer_;
  uint64_t key_;
  SyntheticRange range_;
  int64_t elements_;
};

void check_options(const SyntheticOptions& options) {
  if (options.mode != QuantMode::affine && options.bits > 0) {
    QuantConfig only;
    only.declare(options.mode);
    if (options.bits != only.bits || options.group != only.group) {
      fail(
          ErrorCode::usage,
          fmt::format(
              "[synthetic] {} has {} bits in groups of {}, not {} and {}",
              quant_mode_name(options.mode),
              only.bits,
              only.group,
              options.bits,
              options.group
          )
      );
    }
    return;
  }
  bool bits = options.bits == 0 ||
              (options.bits >= 2 && options.bits <= 8 && options.bits != 7);
  bool group =
      options.group == 32 || options.group == 64 || options.group == 128;
  if (!bits || !group || !is_weight_float(options.dtype)) {
    fail(
        ErrorCode::usage,
        fmt::format(
            "[synthetic] {} bits, group {}, {}: expected 0, 2, 3, 4, 5, 6 or "
            "8 bits, a group of 32, 64 or 128, and F32, F16 or BF16",
            options.bits,
            options.group,
            dtype_name(options.dtype)
        )
    );
  }
}

// Inputs that one output sums over. The last axis of a linear layer, an
// embedding or a stack of experts [E, N, K]; all but the first of a
// convolution, whose last axis may be a few taps or one channel.
int64_t fan_in(const std::vector<int64_t>& shape) {
  constexpr int64_t kTaps = 8;
  if (shape.size() <= 3 && (shape.size() == 2 || shape.back() > kTaps)) {
    return shape.back();
  }
  int64_t product = 1;
  for (size_t i = 1; i < shape.size(); ++i) {
    product *= shape[i];
  }
  return product;
}

}  // namespace

SyntheticRange synthetic_range(const TensorSpec& tensor) {
  if (tensor.shape.size() >= 2) {
    as_matrix(tensor);  // the product fits
    double inputs =
        static_cast<double>(std::max<int64_t>(1, fan_in(tensor.shape)));
    return {0.0f, static_cast<float>(std::sqrt(3.0 / inputs))};
  }
  if (tensor.name.ends_with(".bias")) {
    return {0.0f, 0.125f};
  }
  return {1.0f, 0.25f};
}

void fill_synthetic(
    std::string_view name,
    uint64_t seed,
    const SyntheticRange& range,
    std::span<float> out
) {
  fill_from(stream_key(name, seed), range, 0, out);
}

void write_synthetic(
    const TensorTable& table,
    const std::string& directory,
    const SyntheticOptions& options
) {
  check_options(options);
  SafetensorsWriter writer(directory, list_outputs(table, options));
  for (const TensorSpec& tensor : table) {
    if (tensor.role == TensorRole::unused) {
      continue;
    }
    TensorMaker maker(tensor, options, writer);
    if (is_quantized(tensor, options)) {
      maker.write_quantized();
    } else {
      maker.write_dense();
    }
  }
  writer.finish();
}

}  // namespace mlxcel
