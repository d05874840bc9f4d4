#include "mlxcel/backend/cpu/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"

namespace mlxcel::backend::cpu {

namespace {

/// Bytes that start `offset` bytes behind an aligned address, with nothing
/// readable promised behind them.
class OffsetSource : public WeightSource {
 public:
  OffsetSource(const std::vector<std::byte>& bytes, size_t offset)
      : offset_(offset), size_(bytes.size()), memory_(bytes.size() + offset) {
    std::memcpy(memory_.data() + offset, bytes.data(), bytes.size());
  }
  std::span<const std::byte> bytes() const override {
    return {memory_.data() + offset_, size_};
  }
  std::string origin() const override {
    return "test";
  }

 private:
  size_t offset_;
  size_t size_;
  std::vector<std::byte> memory_;
};

using Random = std::mt19937;

std::vector<float> gaussian(size_t count, float scale, Random& random) {
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  for (float& value : values) {
    value = normal(random);
  }
  return values;
}

Weight float_plane(
    const std::vector<float>& values,
    std::vector<int64_t> shape,
    DType dtype,
    size_t offset
) {
  std::vector<std::byte> bytes;
  auto size = static_cast<size_t>(dtype_size(dtype));
  bytes.resize(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::f32) {
      std::memcpy(&bytes[i * size], &values[i], size);
    } else {
      uint16_t half = dtype == DType::f16 ? float_to_f16(values[i])
                                          : float_to_bf16(values[i]);
      std::memcpy(&bytes[i * size], &half, size);
    }
  }
  Weight weight;
  weight.dtype = dtype;
  weight.shape = std::move(shape);
  weight.source = std::make_shared<OffsetSource>(bytes, offset);
  return weight;
}

WeightFormat affine(int bits, int group, DType dtype) {
  return {QuantMode::affine, dtype, bits, group};
}

WeightFormat dense(DType dtype) {
  return {QuantMode::dense, dtype, 0, 0};
}

WeightFormat block(QuantMode mode) {
  bool nvidia = mode == QuantMode::nvfp4;
  bool eight = mode == QuantMode::mxfp8;
  return {mode, DType::u8, eight ? 8 : 4, nvidia ? 16 : 32};
}

constexpr QuantMode kBlockModes[] = {
    QuantMode::mxfp4, QuantMode::mxfp8, QuantMode::nvfp4};

std::shared_ptr<const WeightSource> random_bytes(
    int64_t count, Random& random, size_t offset, int mask
) {
  std::vector<std::byte> bytes(static_cast<size_t>(count));
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(static_cast<int>(random()) & mask);
  }
  return std::make_shared<OffsetSource>(bytes, offset);
}

/// Any codes (of E4M3 the finite ones up to 2) and scales that give rows of
/// about unit norm.
void make_block_float(LinearWeight& weight, Random& random, size_t offset) {
  const WeightFormat& format = weight.format;
  int64_t words = weight.cols * format.bits / 32;
  weight.codes = {DType::u32, {weight.rows, words}, Component::core, nullptr};
  int mask = format.bits == 8 ? 0xbf : 0xff;
  weight.codes.source =
      random_bytes(weight.rows * words * 4, random, offset, mask);
  int64_t groups = weight.cols / format.group;
  double rms = format.bits == 8 ? 0.6 : 2.9;
  int exponent = static_cast<int>(std::lround(
      -std::log2(2 * rms * std::sqrt(static_cast<double>(weight.cols)))
  ));
  std::vector<std::byte> scales;
  for (int64_t i = 0; i < weight.rows * groups; ++i) {
    int byte = 127 + exponent + static_cast<int>(random() % 2);
    if (format.mode == QuantMode::nvfp4) {
      weight.global_scale = 0.75F;
      byte = std::max(7 + exponent, 0) * 8 + static_cast<int>(random() % 8);
    }
    scales.push_back(static_cast<std::byte>(byte));
  }
  Weight plane{DType::u8, {weight.rows, groups}, Component::core, nullptr};
  plane.source = std::make_shared<OffsetSource>(scales, (offset * 3) % 8);
  weight.scales = plane;
}

/// A matrix of Gaussian values of about unit variance per row sum.
LinearWeight make_matrix(
    const WeightFormat& format,
    int64_t rows,
    int64_t cols,
    Random& random,
    size_t offset = 0
) {
  LinearWeight weight;
  weight.path = "w";
  weight.rows = rows;
  weight.cols = cols;
  weight.format = format;
  float scale = 1.0F / std::sqrt(static_cast<float>(cols));
  if (format.mode == QuantMode::dense) {
    weight.codes = float_plane(
        gaussian(static_cast<size_t>(rows * cols), scale, random),
        {rows, cols},
        format.dtype,
        offset
    );
    return weight;
  }
  if (format.mode != QuantMode::affine) {
    make_block_float(weight, random, offset);
    return weight;
  }
  int64_t words = cols * format.bits / 32;
  std::vector<std::byte> codes(static_cast<size_t>(rows * words * 4));
  for (std::byte& byte : codes) {
    byte = static_cast<std::byte>(random());
  }
  weight.codes.dtype = DType::u32;
  weight.codes.shape = {rows, words};
  weight.codes.source = std::make_shared<OffsetSource>(codes, offset);
  int64_t groups = cols / format.group;
  auto levels = static_cast<float>((1 << format.bits) - 1);
  std::uniform_real_distribution<float> spread(0.5F, 1.5F);
  std::vector<float> scales;
  std::vector<float> biases;
  for (int64_t i = 0; i < rows * groups; ++i) {
    scales.push_back(spread(random) * 3.4F * scale / levels);
    biases.push_back(-scales.back() * levels * 0.5F * spread(random));
  }
  weight.scales =
      float_plane(scales, {rows, groups}, format.dtype, (offset * 3) % 8);
  weight.biases =
      float_plane(biases, {rows, groups}, format.dtype, (offset * 5) % 8);
  return weight;
}

struct Options {
  Family family = Family::decode;
  ActivationMode mode = ActivationMode::int8;
  Isa isa = Isa::generic;
  int threads = 1;
  MatmulEpilogue epilogue;
};

std::vector<float> multiply(
    const WeightGroup& group,
    const std::vector<float>& x,
    int64_t count,
    const Options& options
) {
  auto weight = make_cpu_linear(group);
  int64_t rows = options.epilogue.gate ? weight->rows / 2 : weight->rows;
  int64_t ldx = std::ssize(x) / count;
  // A canary behind each row of the output.
  std::vector<float> padded(static_cast<size_t>(count * (rows + 1)), 77.0F);
  // Pools are kept: starting a thread takes longer than most products here.
  static MatmulScratch scratch;
  static std::map<int, ThreadPool> pools;
  ThreadPool& pool =
      pools.try_emplace(options.threads, options.threads).first->second;
  linear(
      *weight,
      x.data(),
      ldx,
      count,
      options.family,
      options.mode,
      options.isa,
      options.epilogue,
      padded.data(),
      rows + 1,
      scratch,
      pool
  );
  std::vector<float> y;
  for (int64_t t = 0; t < count; ++t) {
    auto row = padded.begin() + t * (rows + 1);
    y.insert(y.end(), row, row + rows);
    EXPECT_EQ(row[rows], 77.0F) << "written behind row " << t;
  }
  return y;
}

std::vector<double> reference(
    const LinearWeight& weight, const std::vector<float>& x, int64_t count
) {
  std::vector<float> values = dequantize(weight);
  int64_t ldx = std::ssize(x) / count;
  std::vector<double> y;
  for (int64_t t = 0; t < count; ++t) {
    for (int64_t r = 0; r < weight.rows; ++r) {
      double sum = 0;
      for (int64_t i = 0; i < weight.cols; ++i) {
        sum +=
            static_cast<double>(values[static_cast<size_t>(r * weight.cols + i)]
            ) *
            static_cast<double>(x[static_cast<size_t>(t * ldx + i)]);
      }
      y.push_back(sum);
    }
  }
  return y;
}

double relative_rms(
    const std::vector<float>& y, const std::vector<double>& expected
) {
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    double difference = static_cast<double>(y[i]) - expected[i];
    error += difference * difference;
    norm += expected[i] * expected[i];
  }
  return std::sqrt(error / norm);
}

double largest_error(
    const std::vector<float>& y, const std::vector<double>& expected
) {
  double error = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    double difference = std::abs(static_cast<double>(y[i]) - expected[i]);
    error = std::isnan(difference) ? INFINITY : std::max(error, difference);
  }
  return error;
}

std::vector<WeightFormat> affine_formats() {
  std::vector<WeightFormat> formats;
  for (int bits : {1, 2, 3, 4, 5, 6, 8}) {
    for (int group : {32, 64, 128}) {
      for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        formats.push_back(affine(bits, group, dtype));
      }
    }
  }
  return formats;
}

std::string label(const WeightFormat& format, const Options& options) {
  return format.describe() + " " + std::string(isa_name(options.isa)) +
         (options.family == Family::decode ? " decode" : " prefill") +
         (options.mode == ActivationMode::int8 ? " int8" : " float32");
}

constexpr Family kFamilies[] = {Family::decode, Family::prefill};
constexpr ActivationMode kModes[] = {
    ActivationMode::int8, ActivationMode::float32};

// Rows and inputs have norms near 1, so an output's rounding error is a few
// units of 2^-24, and of a product of int8 activations below 1.2 %.
constexpr double kFloatBound = 2e-6;
constexpr double kInt8Bound = 1.2e-2;

void check(
    const WeightFormat& format,
    int64_t rows,
    int64_t cols,
    int64_t count,
    const Options& options,
    size_t offset
) {
  Random random(static_cast<uint32_t>(rows * 7 + cols + count));
  LinearWeight weight = make_matrix(format, rows, cols, random, offset);
  std::vector<float> x =
      gaussian(static_cast<size_t>(count * (cols + 3)), 1.0F, random);
  std::vector<float> y = multiply({{weight}}, x, count, options);
  std::vector<double> expected = reference(weight, x, count);
  if (options.mode == ActivationMode::float32 ||
      format.mode == QuantMode::dense) {
    EXPECT_LT(largest_error(y, expected), 4 * kFloatBound)
        << label(format, options) << " [" << rows << ", " << cols << "] x "
        << count << " offset " << offset;
  } else if (rows * count >= 100) {
    EXPECT_LT(relative_rms(y, expected), kInt8Bound)
        << label(format, options) << " [" << rows << ", " << cols << "] x "
        << count << " offset " << offset;
  } else {
    EXPECT_LT(largest_error(y, expected), 5 * kInt8Bound)
        << label(format, options) << " [" << rows << ", " << cols << "] x "
        << count << " offset " << offset;
  }
}

template <typename F>
void for_each_variant(F f) {
  for (Isa isa : available_isas()) {
    for (Family family : kFamilies) {
      for (ActivationMode mode : kModes) {
        Options options;
        options.isa = isa;
        options.family = family;
        options.mode = mode;
        f(options);
      }
    }
  }
}

}  // namespace

TEST(CpuMatmul, EveryAffineFormatMatchesItsDefinition) {
  for_each_variant([](const Options& options) {
    for (const WeightFormat& format : affine_formats()) {
      check(format, 33, 5 * format.group, 4, options, 0);
      check(format, 17, 2 * format.group, 7, options, 3);
    }
  });
}

TEST(CpuMatmul, BlockFloatsMatchTheirDefinition) {
  for_each_variant([](const Options& options) {
    for (QuantMode mode : kBlockModes) {
      WeightFormat format = block(mode);
      for (int64_t groups : {1, 2, 3, 5, 8, 9, 15, 16, 17, 31, 40}) {
        for (int64_t count : {1, 2, 3, 7, 24, 25}) {
          size_t offset = static_cast<size_t>(groups + count) % 6;
          check(format, 37, groups * format.group, count, options, offset);
        }
      }
      check(format, 20, 4096 + 96, 13, options, 1);
      for (int64_t rows : {1, 2, 8, 15, 16, 64, 131}) {
        check(format, rows, 192, 5, options, 3);
      }
    }
  });
}

Weight byte_plane(
    DType dtype, std::vector<int64_t> shape, const std::vector<std::byte>& bytes
) {
  Weight plane{dtype, std::move(shape), Component::core, nullptr};
  plane.source = std::make_shared<OffsetSource>(bytes, 1);
  return plane;
}

// Row t of the activations picks column t.
TEST(CpuMatmul, EveryE4M3CodeIsDecoded) {
  LinearWeight weight;
  weight.path = "w";
  weight.rows = 8;
  weight.cols = 32;
  weight.format = block(QuantMode::mxfp8);
  std::vector<std::byte> codes;
  for (int i = 0; i < 256; ++i) {
    codes.push_back(static_cast<std::byte>((i & 0x7f) == 0x7f ? 0 : i));
  }
  weight.scales =
      byte_plane(DType::u8, {8, 1}, std::vector<std::byte>(8, std::byte{128}));
  std::vector<float> x(32 * 32);
  for (size_t i = 0; i < 32; ++i) {
    x[i * 33] = 1;
  }
  for_each_variant([&](const Options& options) {
    weight.codes = byte_plane(DType::u32, {8, 8}, codes);
    std::vector<float> expected = dequantize(weight);
    std::vector<float> y = multiply({{weight}}, x, 32, options);
    for (size_t row = 0; row < 8; ++row) {
      for (size_t t = 0; t < 32; ++t) {
        EXPECT_EQ(y[t * 8 + row], expected[row * 32 + t])
            << label(weight.format, options) << " code " << row * 32 + t;
      }
    }
    for (int code : {0x7f, 0xff}) {
      std::vector<std::byte> with = codes;
      with[5] = static_cast<std::byte>(code);
      weight.codes = byte_plane(DType::u32, {8, 8}, with);
      y = multiply({{weight}}, x, 32, options);
      EXPECT_TRUE(std::isnan(y[5 * 8])) << label(weight.format, options);
      EXPECT_EQ(y[5 * 8 + 1], expected[32 + 5]);
    }
  });
}

// q and k that were quantised apart have global scales of their own.
TEST(CpuMatmul, PartsKeepTheirGlobalScales) {
  Random random(4);
  LinearWeight a = make_matrix(block(QuantMode::nvfp4), 48, 128, random, 1);
  LinearWeight b = make_matrix(block(QuantMode::nvfp4), 40, 128, random, 2);
  b.global_scale = 3.0F;
  for_each_variant([&](const Options& options) {
    for (int64_t count : {1, 30}) {
      std::vector<float> x =
          gaussian(static_cast<size_t>(count * 128), 1.0F, random);
      std::vector<float> y = multiply({{a, b}}, x, count, options);
      std::vector<double> left = reference(a, x, count);
      std::vector<double> right = reference(b, x, count);
      std::vector<double> expected;
      for (int64_t t = 0; t < count; ++t) {
        expected.insert(
            expected.end(), left.begin() + t * 48, left.begin() + t * 48 + 48
        );
        expected.insert(
            expected.end(), right.begin() + t * 40, right.begin() + t * 40 + 40
        );
      }
      EXPECT_LT(relative_rms(y, expected), kInt8Bound)
          << label(a.format, options) << " x " << count;
    }
  });
}

// Codes of 1 in groups with every scale, finite or not.
TEST(CpuMatmul, EveryScaleByteIsDecoded) {
  for (QuantMode mode : {QuantMode::mxfp4, QuantMode::nvfp4}) {
    LinearWeight weight;
    weight.path = "w";
    weight.rows = 256;
    weight.cols = 32;
    weight.format = block(mode);
    weight.codes = byte_plane(
        DType::u32, {256, 4}, std::vector<std::byte>(256 * 16, std::byte{0x22})
    );
    int64_t groups = 32 / weight.format.group;
    std::vector<std::byte> scales;
    for (int64_t i = 0; i < 256 * groups; ++i) {
      scales.push_back(static_cast<std::byte>(i / groups));
    }
    weight.scales = byte_plane(DType::u8, {256, groups}, scales);
    std::vector<float> expected = dequantize(weight);
    std::vector<float> x(32);
    x[3] = 1;
    for_each_variant([&](const Options& options) {
      std::vector<float> y = multiply({{weight}}, x, 1, options);
      for (size_t row = 0; row < 256; ++row) {
        float want = expected[row * 32 + 3];
        // With the largest scales the sums of int8 codes are infinite.
        if (options.mode == ActivationMode::int8 && want > 1e33F) {
          continue;
        }
        if (std::isnan(want)) {
          EXPECT_TRUE(std::isnan(y[row])) << row;
        } else {
          EXPECT_NEAR(y[row], want, 1e-5F * std::fabs(want))
              << label(weight.format, options) << " scale " << row;
        }
      }
    });
  }
}

TEST(CpuMatmul, DenseFormatsMatchTheirDefinition) {
  for_each_variant([](const Options& options) {
    for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (int64_t cols : {1, 7, 15, 16, 17, 31, 33, 96, 577, 2100}) {
        check(dense(dtype), 19, cols, 3, options, 0);
        check(dense(dtype), 5, cols, 14, options, 1);
      }
    }
  });
}

TEST(CpuMatmul, ShapesAndOffsets) {
  for_each_variant([](const Options& options) {
    WeightFormat g32 = affine(4, 32, DType::f16);
    for (int64_t rows : {1, 2, 3, 5, 7, 16, 17, 33, 100}) {
      for (int64_t cols : {32, 64, 96, 160, 576, 1536}) {
        check(g32, rows, cols, 1, options, 0);
        check(g32, rows, cols, 5, options, 5);
      }
    }
    for (size_t offset : {1, 2, 3, 5}) {
      for (int bits : {1, 2, 3, 4, 5, 6, 8}) {
        check(affine(bits, 32, DType::f32), 50, 96, 2, options, offset);
        check(affine(bits, 64, DType::bf16), 50, 576, 2, options, offset);
      }
    }
  });
}

TEST(CpuMatmul, AnyNumberOfActivationRows) {
  for_each_variant([](const Options& options) {
    for (int64_t count :
         {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16, 17, 64, 100}) {
      check(affine(4, 64, DType::f16), 34, 128, count, options, 1);
      check(affine(6, 32, DType::f16), 34, 96, count, options, 1);
      check(affine(8, 32, DType::f16), 34, 96, count, options, 1);
      check(dense(DType::bf16), 34, 96, count, options, 1);
    }
  });
}

TEST(CpuMatmul, ColumnsBeyondOnePanel) {
  for_each_variant([](const Options& options) {
    check(affine(4, 32, DType::f16), 20, 4096 + 96, 13, options, 1);
    check(affine(8, 128, DType::f16), 20, 4096, 3, options, 1);
    check(dense(DType::bf16), 20, 5000, 13, options, 1);
  });
}

TEST(CpuMatmul, ARowHasTheSameBitsInAnyCompany) {
  for_each_variant([](Options options) {
    std::vector<WeightFormat> formats = {
        affine(4, 32, DType::f16),
        affine(4, 64, DType::f32),
        affine(8, 64, DType::bf16),
        affine(3, 32, DType::f16),
        dense(DType::f32),
        dense(DType::bf16)};
    for (const WeightFormat& format : formats) {
      Random random(5);
      int64_t cols = 2304;
      int64_t count = 29;
      LinearWeight weight = make_matrix(format, 70, cols, random, 1);
      std::vector<float> x =
          gaussian(static_cast<size_t>(count * cols), 1.0F, random);
      options.threads = 1;
      std::vector<float> all = multiply({{weight}}, x, count, options);
      for (int threads : {2, 3}) {
        options.threads = threads;
        EXPECT_EQ(multiply({{weight}}, x, count, options), all)
            << label(format, options) << " threads " << threads;
      }
      options.threads = 2;
      for (int64_t first : {0, 1, 12, 27, 28}) {
        for (int64_t rows : {1, 2, 3, 5, 8}) {
          if (first + rows > count) {
            continue;
          }
          std::vector<float> part(
              x.begin() + first * cols, x.begin() + (first + rows) * cols
          );
          std::vector<float> expected(
              all.begin() + first * 70, all.begin() + (first + rows) * 70
          );
          EXPECT_EQ(multiply({{weight}}, part, rows, options), expected)
              << label(format, options) << " rows " << first << " + " << rows;
        }
      }
    }
  });
}

TEST(CpuMatmul, AnOutputHasTheSameBitsInAnyGroup) {
  for_each_variant([](Options options) {
    Random random(11);
    std::vector<LinearWeight> parts = {
        make_matrix(affine(4, 32, DType::f16), 65, 576, random, 1),
        make_matrix(affine(4, 32, DType::f16), 19, 576, random, 2),
        make_matrix(affine(6, 64, DType::f16), 33, 576, random, 3),
        make_matrix(dense(DType::bf16), 7, 576, random, 5)};
    for (int64_t count : {1, 3, 20}) {
      std::vector<float> x =
          gaussian(static_cast<size_t>(count * 576), 1.0F, random);
      for (int threads : {1, 2, 3}) {
        options.threads = threads;
        std::vector<float> together = multiply({parts}, x, count, options);
        int64_t first = 0;
        for (const LinearWeight& part : parts) {
          std::vector<float> alone = multiply({{part}}, x, count, options);
          for (int64_t t = 0; t < count; ++t) {
            for (int64_t r = 0; r < part.rows; ++r) {
              ASSERT_EQ(
                  together[static_cast<size_t>(t * 124 + first + r)],
                  alone[static_cast<size_t>(t * part.rows + r)]
              ) << label(part.format, options)
                << " row " << r << " of " << count;
            }
          }
          first += part.rows;
        }
      }
    }
  });
}

namespace {

double activate(Activation activation, double v) {
  switch (activation) {
    case Activation::silu:
      return v / (1 + std::exp(-v));
    case Activation::gelu:
      return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0)));
    case Activation::gelu_tanh:
      return 0.5 * v *
             (1 +
              std::tanh(
                  std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)
              ));
    case Activation::relu:
      return std::max(v, 0.0);
  }
  return v;
}

constexpr Activation kActivations[] = {
    Activation::silu,
    Activation::gelu,
    Activation::gelu_tanh,
    Activation::relu};

LinearWeight with_bias(LinearWeight weight, Random& random) {
  weight.bias = float_plane(
      gaussian(static_cast<size_t>(weight.rows), 1.0F, random),
      {weight.rows},
      DType::f32,
      0
  );
  return weight;
}

std::vector<double> biased(
    const LinearWeight& weight, const std::vector<float>& x, int64_t count
) {
  std::vector<double> y = reference(weight, x, count);
  if (weight.bias) {
    std::vector<float> bias = to_float(*weight.bias);
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] += static_cast<double>(bias[i % bias.size()]);
    }
  }
  return y;
}

}  // namespace

TEST(CpuMatmul, BiasActivationAndResidual) {
  for_each_variant([](Options options) {
    options.mode = ActivationMode::float32;
    Random random(3);
    LinearWeight weight = with_bias(
        make_matrix(affine(4, 32, DType::f16), 37, 96, random), random
    );
    for (int64_t count : {1, 9}) {
      std::vector<float> x =
          gaussian(static_cast<size_t>(count * 96), 3.0F, random);
      std::vector<double> plain = biased(weight, x, count);
      for (Activation activation : kActivations) {
        options.epilogue = {};
        options.epilogue.activation = activation;
        std::vector<double> expected = plain;
        for (double& value : expected) {
          value = activate(activation, value);
        }
        EXPECT_LT(
            largest_error(multiply({{weight}}, x, count, options), expected),
            2e-5
        ) << label(weight.format, options)
          << " activation " << static_cast<int>(activation);
      }
      std::vector<float> residual =
          gaussian(static_cast<size_t>(count * 40), 1.0F, random);
      options.epilogue = {};
      options.epilogue.residual = residual.data();
      options.epilogue.ld_residual = 40;
      for (size_t i = 0; i < plain.size(); ++i) {
        plain[i] += static_cast<double>(residual[i / 37 * 40 + i % 37]);
      }
      EXPECT_LT(
          largest_error(multiply({{weight}}, x, count, options), plain), 2e-5
      ) << label(weight.format, options)
        << " residual";
    }
  });
}

TEST(CpuMatmul, GateOfTwoParts) {
  for_each_variant([](Options options) {
    options.mode = ActivationMode::float32;
    Random random(3);
    for (int bits : {4, 8}) {
      LinearWeight gate =
          make_matrix(affine(4, 32, DType::f16), 53, 96, random);
      LinearWeight up = with_bias(
          make_matrix(affine(bits, 32, DType::f16), 53, 96, random), random
      );
      for (int64_t count : {1, 9}) {
        std::vector<float> x =
            gaussian(static_cast<size_t>(count * 96), 3.0F, random);
        std::vector<double> a = biased(gate, x, count);
        std::vector<double> b = biased(up, x, count);
        for (Activation activation : kActivations) {
          options.threads = 2;
          options.epilogue = {};
          options.epilogue.gate = activation;
          std::vector<double> expected = b;
          for (size_t i = 0; i < a.size(); ++i) {
            expected[i] *= activate(activation, a[i]);
          }
          EXPECT_LT(
              largest_error(
                  multiply({{gate, up}}, x, count, options), expected
              ),
              2e-4
          ) << label(gate.format, options)
            << " activation " << static_cast<int>(activation);
        }
      }
    }
  });
}

TEST(CpuMatmul, ActivationsAreAccurateEverywhere) {
  // A matrix of one column that is 1: the activations alone.
  LinearWeight one;
  one.path = "one";
  one.rows = 1;
  one.cols = 1;
  one.format = dense(DType::f32);
  one.codes = float_plane({1.0F}, {1, 1}, DType::f32, 0);
  // Rows beyond the first reach the vector code.
  LinearWeight column = one;
  column.rows = 40;
  column.codes =
      float_plane(std::vector<float>(40, 1.0F), {40, 1}, DType::f32, 0);
  for_each_variant([&](Options options) {
    for (Activation activation : kActivations) {
      options.epilogue = {};
      options.epilogue.activation = activation;
      for (double v = -110; v<110; v += v> - 6 && v < 6 ? 0.0137 : 0.77) {
        auto input = static_cast<float>(v);
        std::vector<float> y = multiply({{column}}, {input}, 1, options);
        double expected = activate(activation, static_cast<double>(input));
        double scale = std::max(std::abs(v), 1e-3);
        EXPECT_NEAR(y[0], expected, 3e-7 * scale)
            << static_cast<int>(activation) << " of " << v << " "
            << isa_name(options.isa);
        EXPECT_NEAR(y[39], expected, 3e-7 * scale)
            << static_cast<int>(activation) << " of " << v << " "
            << isa_name(options.isa);
      }
    }
  });
}

TEST(CpuMatmul, ANotANumberComesThrough) {
  for_each_variant([](Options options) {
    Random random(3);
    LinearWeight weight =
        make_matrix(affine(4, 32, DType::f16), 20, 96, random);
    std::vector<float> x = gaussian(2 * 96, 1.0F, random);
    x[40] = NAN;
    std::vector<float> y = multiply({{weight}}, x, 2, options);
    for (size_t i = 0; i < 20; ++i) {
      EXPECT_TRUE(std::isnan(y[i])) << label(weight.format, options);
      EXPECT_TRUE(std::isfinite(y[20 + i])) << label(weight.format, options);
    }
    options.epilogue.activation = Activation::silu;
    EXPECT_TRUE(std::isnan(multiply({{weight}}, x, 2, options)[0]));
  });
}

TEST(CpuMatmul, GatherRowsOfEveryFormat) {
  std::vector<WeightFormat> formats = affine_formats();
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    formats.push_back(dense(dtype));
  }
  for (QuantMode mode : kBlockModes) {
    formats.push_back(block(mode));
  }
  for (const WeightFormat& format : formats) {
    for (size_t offset : {0, 3}) {
      Random random(9);
      int64_t cols = format.mode == QuantMode::dense ? 77 : 3 * format.group;
      LinearWeight table = make_matrix(format, 9, cols, random, offset);
      std::vector<float> all = dequantize(table);
      std::vector<int32_t> ids = {8, 0, 8, 3};
      std::vector<float> out(static_cast<size_t>(4 * cols));
      gather_rows(table, ids, out.data());
      for (size_t i = 0; i < out.size(); ++i) {
        auto id = static_cast<size_t>(ids[i / static_cast<size_t>(cols)]);
        size_t at =
            id * static_cast<size_t>(cols) + i % static_cast<size_t>(cols);
        ASSERT_NEAR(out[i], all[at], 1e-7) << format.describe() << " " << i;
      }
    }
  }
}

TEST(CpuMatmul, RefusesWhatItHasNoKernelsFor) {
  EXPECT_FALSE(is_mlx_format({QuantMode::mxfp4, DType::u8, 4, 16}));
  EXPECT_FALSE(is_mlx_format(affine(7, 32, DType::f16)));
  EXPECT_FALSE(is_mlx_format(affine(4, 16, DType::f16)));
  EXPECT_FALSE(is_mlx_format(dense(DType::f64)));
  EXPECT_TRUE(is_mlx_format(dense(DType::bf16)));
  Random random(1);
  LinearWeight weight = make_matrix(affine(4, 32, DType::f16), 2, 64, random);
  weight.path = "model.layers.7.mlp.up_proj";
  weight.format.bits = 7;
  try {
    make_cpu_linear({{weight}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(error.message().find(weight.path), std::string::npos);
  }
}

}  // namespace mlxcel::backend::cpu
