#include "tests/unit/backend_graph/support/random_weights.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <new>

#include "mlxcel/core/numbers.h"

namespace mlxcel::test {

namespace {

// The payload ends where a page begins that can't be read, so that whoever
// reads beyond it is found out, and `offset` bytes before that if it is to lie
// off alignment.
class GuardedSource final : public WeightSource {
 public:
  GuardedSource(std::span<const std::byte> bytes, size_t offset)
      : page_(sysconf(_SC_PAGESIZE)), size_(bytes.size()) {
    length_ = round_up(size_ + offset + page_, page_) + page_;
    void* memory = mmap(
        nullptr,
        length_,
        PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS,
        -1,
        0
    );
    if (memory == MAP_FAILED) {
      throw std::bad_alloc();
    }
    memory_ = static_cast<std::byte*>(memory);
    std::byte* guard = memory_ + length_ - page_;
    mprotect(guard, page_, PROT_NONE);
    payload_ = guard - size_ - offset;
    std::memcpy(payload_, bytes.data(), size_);
  }
  ~GuardedSource() override {
    munmap(memory_, length_);
  }
  GuardedSource(const GuardedSource&) = delete;
  GuardedSource& operator=(const GuardedSource&) = delete;

  std::span<const std::byte> bytes() const override {
    return {payload_, size_};
  }
  std::string origin() const override {
    return "test";
  }

 private:
  size_t page_;
  size_t size_;
  size_t length_ = 0;
  std::byte* memory_ = nullptr;
  std::byte* payload_ = nullptr;
};

template <typename T>
Weight make_weight(
    const std::vector<T>& data,
    std::vector<int64_t> shape,
    DType dtype,
    size_t offset
) {
  Weight weight;
  weight.dtype = dtype;
  weight.shape = std::move(shape);
  weight.source =
      std::make_shared<GuardedSource>(std::as_bytes(std::span(data)), offset);
  return weight;
}

// Codes of a row one after another in a little-endian bit stream.
std::vector<uint32_t> pack(
    const std::vector<int>& codes, int64_t rows, int64_t cols, int bits
) {
  int64_t words = cols * bits / 32;
  std::vector<uint32_t> packed(rows * words);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t bit = 0; bit < cols * bits; ++bit) {
      int code = codes[row * cols + bit / bits];
      uint32_t value = (code >> (bit % bits)) & 1;
      packed[row * words + bit / 32] |= value << (bit % 32);
    }
  }
  return packed;
}

// OCP Microscaling Formats 1.0, section 5.3: E2M1 and E4M3 elements.
double decode_e2m1(int code) {
  constexpr double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  double value = magnitudes[code & 7];
  return (code & 8) != 0 ? -value : value;
}

double decode_e4m3(int code) {
  int exponent = (code >> 3) & 15;
  int mantissa = code & 7;
  double value = exponent == 0 ? std::ldexp(mantissa, -9)
                               : std::ldexp(8 + mantissa, exponent - 10);
  return (code & 128) != 0 ? -value : value;
}

void fill_affine(RandomMatrix& matrix, Random& random, size_t offset) {
  LinearWeight& weight = matrix.weight;
  const WeightFormat& format = weight.format;
  int64_t groups = weight.cols / format.group;
  int levels = 1 << format.bits;
  std::vector<float> scales = random.uniform(weight.rows * groups);
  std::vector<float> biases(scales.size());
  for (size_t i = 0; i < scales.size(); ++i) {
    scales[i] = (1.5F + scales[i]) / static_cast<float>(levels);
    biases[i] = -0.5F * static_cast<float>(levels) * scales[i] +
                0.1F * random.uniform();
  }
  std::vector<int64_t> shape = {weight.rows, groups};
  weight.scales = float_weight(scales, shape, format.dtype, offset);
  weight.biases = float_weight(biases, shape, format.dtype, offset);
  std::vector<int> codes(weight.rows * weight.cols);
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<int>(random.next() % levels);
    size_t group = i / format.group;
    matrix.values[i] = double(scales[group]) * codes[i] + biases[group];
  }
  weight.codes = make_weight(
      pack(codes, weight.rows, weight.cols, format.bits),
      {weight.rows, weight.cols * format.bits / 32},
      DType::u32,
      offset
  );
}

void fill_block_float(RandomMatrix& matrix, Random& random, size_t offset) {
  LinearWeight& weight = matrix.weight;
  const WeightFormat& format = weight.format;
  int64_t groups = weight.cols / format.group;
  std::vector<uint8_t> scales(weight.rows * groups);
  std::vector<double> factors(scales.size());
  for (size_t i = 0; i < scales.size(); ++i) {
    if (format.mode == QuantMode::nvfp4) {
      scales[i] = static_cast<uint8_t>(0x20 + random.next() % 0x20);
      factors[i] = decode_e4m3(scales[i]);
    } else {
      scales[i] = static_cast<uint8_t>(122 + random.next() % 6);
      factors[i] = std::ldexp(1.0, scales[i] - 127);
    }
  }
  if (format.mode == QuantMode::nvfp4) {
    weight.global_scale = 0.75F;
  }
  std::vector<int> codes(weight.rows * weight.cols);
  for (size_t i = 0; i < codes.size(); ++i) {
    int code = static_cast<int>(random.next() % (1U << format.bits));
    if (format.bits == 8 && (code & 0x7F) >= 0x48) {
      code &= 0xBF;
    }
    codes[i] = code;
    double value = format.bits == 4 ? decode_e2m1(code) : decode_e4m3(code);
    matrix.values[i] =
        value * factors[i / format.group] * double(weight.global_scale);
  }
  weight.codes = make_weight(
      pack(codes, weight.rows, weight.cols, format.bits),
      {weight.rows, weight.cols * format.bits / 32},
      DType::u32,
      offset
  );
  weight.scales = make_weight(scales, {weight.rows, groups}, DType::u8, offset);
}

}  // namespace

// Steele, Lea and Flood, "Fast splittable pseudorandom number generators".
uint64_t Random::next() {
  state_ += 0x9E3779B97F4A7C15ULL;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

float Random::uniform() {
  return static_cast<float>(next() >> 40) * 0x1p-23F - 1.0F;
}

std::vector<float> Random::uniform(size_t count, float scale) {
  std::vector<float> values(count);
  for (float& value : values) {
    value = scale * uniform();
  }
  return values;
}

Weight float_weight(
    std::vector<float>& values,
    std::vector<int64_t> shape,
    DType dtype,
    size_t offset
) {
  if (dtype == DType::f32) {
    return make_weight(values, std::move(shape), dtype, offset);
  }
  std::vector<uint16_t> halves;
  for (float& value : values) {
    bool half = dtype == DType::f16;
    halves.push_back(half ? float_to_f16(value) : float_to_bf16(value));
    value = half ? f16_to_float(halves.back()) : bf16_to_float(halves.back());
  }
  return make_weight(halves, std::move(shape), dtype, offset);
}

RandomMatrix random_matrix(
    const std::string& path,
    int64_t rows,
    int64_t cols,
    const WeightFormat& format,
    uint64_t seed,
    const MatrixOptions& options
) {
  Random random(seed);
  RandomMatrix matrix;
  LinearWeight& weight = matrix.weight;
  weight.path = path;
  weight.rows = rows;
  weight.cols = cols;
  weight.format = format;
  matrix.values.resize(rows * cols);
  if (format.mode == QuantMode::dense) {
    std::vector<float> values = random.uniform(rows * cols);
    weight.codes =
        float_weight(values, {rows, cols}, format.dtype, options.offset);
    matrix.values.assign(values.begin(), values.end());
  } else if (format.mode == QuantMode::affine) {
    fill_affine(matrix, random, options.offset);
  } else {
    fill_block_float(matrix, random, options.offset);
  }
  if (options.bias) {
    bool floats = is_weight_float(format.dtype);
    std::vector<float> bias = random.uniform(rows);
    weight.bias = float_weight(
        bias, {rows}, floats ? format.dtype : DType::bf16, options.offset
    );
    matrix.bias.assign(bias.begin(), bias.end());
  }
  return matrix;
}

WeightFormat dense(DType dtype) {
  return {QuantMode::dense, dtype, 0, 0};
}

WeightFormat affine(int bits, int group, DType dtype) {
  return {QuantMode::affine, dtype, bits, group};
}

}  // namespace mlxcel::test
