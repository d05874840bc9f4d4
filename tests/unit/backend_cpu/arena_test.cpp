#include "mlxcel/backend/cpu/arena.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "mlxcel/core/error.h"

namespace mlxcel::test {

namespace {

using backend::Tensor;
using backend::cpu::Arena;
using backend::cpu::cpu_tensor;

TEST(CpuArena, RecyclesByHandle) {
  Arena arena;
  const float* first;
  {
    Tensor x = arena.make(3, 100);
    EXPECT_EQ(x.rows(), 3);
    EXPECT_EQ(x.cols(), 100);
    first = cpu_tensor(x).data;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0U);
    Tensor copy = x;
    x = Tensor();
    // Still held by the copy.
    Tensor other = arena.make(3, 100);
    EXPECT_NE(cpu_tensor(other).data, first);
  }
  int64_t held = arena.held_bytes();
  Tensor again = arena.make(3, 100);
  Tensor more = arena.make(3, 100);
  EXPECT_EQ(arena.held_bytes(), held);
}

TEST(CpuArena, ASteadyStepAllocatesNothing) {
  Arena arena;
  auto step = [&] {
    Tensor hidden = arena.make(1, 576);
    for (int layer = 0; layer < 30; ++layer) {
      Tensor qkv = arena.make(1, 960);
      Tensor wide = arena.make(1, 1536);
      hidden = arena.make(1, 576);
    }
    Tensor logits = arena.make(1, 49152);
    hidden = Tensor();
    logits = Tensor();
    arena.end_step();
  };
  step();
  int64_t held = arena.held_bytes();
  for (int i = 0; i < 200; ++i) {
    step();
    EXPECT_EQ(arena.held_bytes(), held);
  }
}

TEST(CpuArena, GivesBackWhatALongPromptNeeded) {
  Arena arena;
  { Tensor prompt = arena.make(512, 4096); }
  EXPECT_GE(arena.held_bytes(), 512 * 4096 * 4);
  for (int i = 0; i < 100; ++i) {
    Tensor small = arena.make(1, 64);
    arena.end_step();
  }
  EXPECT_LT(arena.held_bytes(), 1 << 16);
}

TEST(CpuArena, WastesAtMostAQuarter) {
  for (int64_t cols : {257, 1000, 1025, 1 << 20, (1 << 20) + 1}) {
    Arena arena;
    Tensor x = arena.make(1, cols);
    EXPECT_GE(arena.held_bytes(), cols * 4);
    EXPECT_LE(arena.held_bytes(), cols * 5 + 64);
  }
}

TEST(CpuArena, RefusesSizesOutOfReach) {
  Arena arena;
  EXPECT_THROW(arena.make(int64_t{1} << 40, int64_t{1} << 40), Error);
  EXPECT_THROW(arena.make(-1, 4), Error);
  Tensor none = arena.make(0, 16);
  EXPECT_EQ(none.rows(), 0);
}

}  // namespace

}  // namespace mlxcel::test
