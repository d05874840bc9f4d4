#include "mlxcel/backend/cpu/kv_pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "mlxcel/backend/cpu/kernels.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/os.h"

namespace mlxcel::test {

namespace {

using backend::kBlockTokens;
using backend::LayerState;
using backend::StateLayout;
using backend::cpu::available_isas;
using backend::cpu::Isa;
using backend::cpu::kernels;
using backend::cpu::KvPool;
using backend::cpu::KvView;

constexpr LayerState::Kind kAttention = LayerState::Kind::attention;

TEST(CpuKvPool, CountsTheBytesOfABlock) {
  StateLayout layout{{{kAttention, 3, 64, 64}, {}, {kAttention, 1, 24, 20}}};
  KvPool half(layout, 10, true);
  EXPECT_EQ(half.blocks(), 10);
  // Values are padded to 16 a row.
  uint64_t values = 3 * (64 + 64) + (24 + 32);
  EXPECT_EQ(half.block_bytes(), values * kBlockTokens * 2);
  EXPECT_EQ(KvPool(layout, 1, false).block_bytes(), values * kBlockTokens * 4);
  EXPECT_EQ(half.kv_heads(2), 1);
  EXPECT_THROW(half.layer(1), Error);
  EXPECT_THROW(half.layer(3), Error);
  EXPECT_THROW(half.layer(-1), Error);
}

TEST(CpuKvPool, TakesMemoryWhenItIsTouched) {
  StateLayout layout{{{kAttention, 8, 128, 128}}};
  uint64_t before = os::resident_bytes();
  KvPool pool(layout, 1 << 16, false);
  EXPECT_GT(
      pool.block_bytes() * static_cast<uint64_t>(pool.blocks()), 1U << 30
  );
  EXPECT_LT(os::resident_bytes(), before + (64U << 20));
}

TEST(CpuKvPool, RefusesSizesOutOfReach) {
  StateLayout layout{{{kAttention, 1 << 20, 1 << 20, 1 << 20}}};
  EXPECT_THROW(KvPool(layout, 1 << 20, true), Error);
  EXPECT_THROW(KvPool({{{kAttention, 0, 64, 64}}}, 1, true), Error);
  EXPECT_THROW(KvPool({{{kAttention, 1, -64, 64}}}, 1, true), Error);
}

class CpuKvAppend : public testing::TestWithParam<Isa> {};

// Every token lands in its slot and nowhere else.
TEST_P(CpuKvAppend, FillsOneSlot) {
  for (bool half : {true, false}) {
    StateLayout layout{{{kAttention, 2, 5, 17}, {kAttention, 2, 5, 17}}};
    KvPool pool(layout, 3, half);
    const KvView& kv = pool.layer(1);
    std::vector<float> keys(2 * 5);
    std::vector<float> values(2 * 17);
    for (size_t i = 0; i < keys.size(); ++i) {
      keys[i] = static_cast<float>(i + 1);
    }
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i + 100);
    }
    constexpr int64_t slot = 7;
    kernels(GetParam())
        .attention.append(kv, 2, 1, slot, keys.data(), values.data());
    auto read = [&](const std::byte* at, int64_t index) {
      return half ? f16_to_float(load_le<uint16_t>(at + 2 * index))
                  : load_le<float>(at + 4 * index);
    };
    for (int64_t head = 0; head < 2; ++head) {
      for (int64_t d = 0; d < 5; ++d) {
        for (int64_t t = 0; t < kBlockTokens; ++t) {
          EXPECT_EQ(
              read(kv.keys(1, head), d * kBlockTokens + t),
              t == slot ? keys[static_cast<size_t>(head * 5 + d)] : 0.0F
          );
        }
      }
      for (int64_t t = 0; t < kBlockTokens; ++t) {
        for (int64_t d = 0; d < kv.value_stride; ++d) {
          bool own = t == slot && d < 17;
          EXPECT_EQ(
              read(kv.values(1, head), t * kv.value_stride + d),
              own ? values[static_cast<size_t>(head * 17 + d)] : 0.0F
          );
        }
      }
    }
    // Blocks 0 and 2 and the other layer are untouched.
    std::vector<std::byte> zero(pool.block_bytes());
    EXPECT_EQ(
        std::memcmp(pool.layer(0).base, zero.data(), pool.block_bytes()), 0
    );
    EXPECT_EQ(
        std::memcmp(
            pool.layer(0).base + 2 * pool.block_bytes(),
            zero.data(),
            pool.block_bytes()
        ),
        0
    );
  }
}

TEST_P(CpuKvAppend, HalfPrecisionRoundsAndSaturates) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {
      0.0F,
      -0.0F,
      1.0F,
      1.0F + 0x1p-11F,
      1.0F + 0x1.8p-10F,
      65504.0F,
      65519.0F,
      65520.0F,
      1e9F,
      -1e9F,
      infinity,
      -infinity,
      0x1p-14F,
      0x1p-24F,
      0x1p-25F,
      0x1.8p-24F,
      0x1p-26F,
      -0x1.8p-15F,
      0x1.ffcp-15F,
      3.14159F};
  auto n = static_cast<int64_t>(x.size());
  KvPool pool({{{kAttention, 1, n, n}}}, 1, true);
  const KvView& kv = pool.layer(0);
  kernels(GetParam()).attention.append(kv, 1, 0, 0, x.data(), x.data());
  for (int64_t i = 0; i < n; ++i) {
    float value = x[static_cast<size_t>(i)];
    uint16_t expected =
        float_to_f16(std::max(-65504.0F, std::min(65504.0F, value)));
    EXPECT_EQ(load_le<uint16_t>(kv.keys(0, 0) + 2 * i * kBlockTokens), expected)
        << value;
    EXPECT_EQ(load_le<uint16_t>(kv.values(0, 0) + 2 * i), expected) << value;
  }
}

TEST_P(CpuKvAppend, NanStaysNan) {
  float x = NAN;
  KvPool pool({{{kAttention, 1, 1, 1}}}, 1, true);
  const KvView& kv = pool.layer(0);
  kernels(GetParam()).attention.append(kv, 1, 0, 0, &x, &x);
  EXPECT_TRUE(std::isnan(f16_to_float(load_le<uint16_t>(kv.keys(0, 0)))));
  EXPECT_TRUE(std::isnan(f16_to_float(load_le<uint16_t>(kv.values(0, 0)))));
}

INSTANTIATE_TEST_SUITE_P(
    Isas,
    CpuKvAppend,
    testing::ValuesIn(available_isas()),
    [](const testing::TestParamInfo<Isa>& param) {
      return std::string(isa_name(param.param));
    }
);

}  // namespace

}  // namespace mlxcel::test
