#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "mlxcel/backend/cpu/kernels.h"
#include "tests/unit/backend_graph/support/random_weights.h"
#include "tests/unit/backend_graph/support/reference.h"

namespace mlxcel::test {

namespace {

using backend::NormKind;
using backend::cpu::available_isas;
using backend::cpu::Isa;
using backend::cpu::kernels;
using backend::cpu::RowKernels;

const std::vector<int64_t> kSizes = {1, 7, 16, 31, 64, 65, 576, 1000};

class CpuRow : public testing::TestWithParam<Isa> {
 protected:
  const RowKernels& row = kernels(GetParam()).row;
};

TEST_P(CpuRow, RmsNormMatchesDouble) {
  for (int64_t n : kSizes) {
    auto size = static_cast<size_t>(n);
    auto x = Random(1).uniform(size, 3.0F);
    auto weight = Random(2).uniform(size);
    std::vector<float> y(size);
    row.rms_norm(x.data(), weight.data(), 1e-5F, n, y.data());
    EXPECT_LE(
        relative_rms(y, reference_norm(NormKind::rms, x, n, weight, {}, 1e-5F)),
        1e-6
    ) << n;
    row.rms_norm(x.data(), nullptr, 1e-5F, n, y.data());
    EXPECT_LE(
        relative_rms(y, reference_norm(NormKind::rms, x, n, {}, {}, 1e-5F)),
        1e-6
    ) << n;
  }
}

TEST_P(CpuRow, LayerNormMatchesDouble) {
  for (int64_t n : kSizes) {
    auto size = static_cast<size_t>(n);
    auto x = Random(1).uniform(size, 3.0F);
    for (float& value : x) {
      value += 5.0F;
    }
    auto weight = Random(2).uniform(size);
    auto bias = Random(3).uniform(size);
    std::vector<float> y(size);
    row.layer_norm(x.data(), weight.data(), bias.data(), 1e-5F, n, y.data());
    EXPECT_LE(
        relative_rms(
            y, reference_norm(NormKind::layer, x, n, weight, bias, 1e-5F)
        ),
        3e-6
    ) << n;
    row.layer_norm(x.data(), nullptr, nullptr, 1e-5F, n, y.data());
    EXPECT_LE(
        relative_rms(y, reference_norm(NormKind::layer, x, n, {}, {}, 1e-5F)),
        3e-6
    ) << n;
  }
}

TEST_P(CpuRow, AddAndMultiply) {
  for (int64_t n : kSizes) {
    auto size = static_cast<size_t>(n);
    auto a = Random(1).uniform(size);
    auto b = Random(2).uniform(size);
    std::vector<float> y(size);
    row.add(a.data(), b.data(), n, y.data());
    for (size_t i = 0; i < size; ++i) {
      EXPECT_EQ(y[i], a[i] + b[i]);
    }
    row.multiply(a.data(), -1.5F, n, a.data());
    row.multiply(a.data(), 2.0F, n, y.data());
    for (size_t i = 0; i < size; ++i) {
      EXPECT_EQ(y[i], 2.0F * a[i]);
    }
  }
}

// Relative accuracy, also for small values, where 1 - 2 / (1 + e^2x) has none.
TEST_P(CpuRow, SoftcapMatchesDouble) {
  std::vector<float> x;
  for (float value = 1e-6F; value < 1e4F; value *= 1.0137F) {
    x.push_back(value);
    x.push_back(-value);
  }
  x.push_back(0.0F);
  std::vector<float> y = x;
  row.softcap(y.data(), 30.0F, static_cast<int64_t>(y.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    double expected = 30.0 * std::tanh(static_cast<double>(x[i]) / 30.0);
    EXPECT_NEAR(y[i], expected, 5e-7 * std::abs(expected)) << x[i];
  }
}

TEST_P(CpuRow, SoftcapKeepsNanAndBoundsInfinity) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {infinity, -infinity, NAN, 1.0F};
  row.softcap(x.data(), 30.0F, 4);
  EXPECT_EQ(x[0], 30.0F);
  EXPECT_EQ(x[1], -30.0F);
  EXPECT_TRUE(std::isnan(x[2]));
  EXPECT_FALSE(std::isnan(x[3]));
}

TEST_P(CpuRow, ArgmaxTakesTheFirstOfTheLargest) {
  for (int64_t n : {1, 5, 512, 513, 49152}) {
    auto size = static_cast<size_t>(n);
    auto x = Random(5).uniform(size);
    for (int64_t place : {int64_t{0}, n / 3, n / 2, n - 1}) {
      auto y = x;
      y[static_cast<size_t>(place)] = 2.0F;
      y.back() = 2.0F;
      EXPECT_EQ(row.argmax(y.data(), n), place) << n;
    }
  }
  std::vector<float> low(600, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(row.argmax(low.data(), 600), 0);
  low[577] = -1e30F;
  EXPECT_EQ(row.argmax(low.data(), 600), 577);
}

INSTANTIATE_TEST_SUITE_P(
    Isas,
    CpuRow,
    testing::ValuesIn(available_isas()),
    [](const testing::TestParamInfo<Isa>& param) {
      return std::string(isa_name(param.param));
    }
);

}  // namespace

}  // namespace mlxcel::test
