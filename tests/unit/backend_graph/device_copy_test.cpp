#include "mlxcel/backend/graph/device_copy.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "mlx/mlx.h"

namespace mlxcel::test {
namespace {

namespace mx = mlx::core;
using backend::graph::copy_to_device;
using backend::graph::finish_device_copies;

constexpr size_t kBuffer = 64 << 20;

std::vector<std::byte> noise(size_t size, uint32_t seed) {
  std::vector<std::byte> bytes(size);
  uint32_t state = seed * 2654435761U + 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

bool same(const mx::array& there, const std::vector<std::byte>& bytes) {
  mx::array here(
      reinterpret_cast<const uint8_t*>(bytes.data()),
      {static_cast<int>(bytes.size())},
      mx::uint8
  );
  return mx::array_equal(there, here, mx::default_device()).item<bool>();
}

// Sizes around the buffers', more of them than there are buffers.
void copy_and_compare() {
  std::vector<std::vector<std::byte>> sources;
  std::vector<mx::array> copies;
  uint32_t seed = 0;
  for (size_t size :
       {size_t{1},
        size_t{3},
        kBuffer - 1,
        kBuffer,
        kBuffer + 5,
        3 * kBuffer + 1,
        size_t{4096},
        size_t{77}}) {
    sources.push_back(noise(size, ++seed));
    auto copy =
        copy_to_device(sources.back(), {static_cast<int>(size)}, mx::uint8);
    ASSERT_TRUE(copy.has_value());
    copies.push_back(*copy);
  }
  finish_device_copies();
  for (size_t i = 0; i < sources.size(); ++i) {
    EXPECT_TRUE(same(copies[i], sources[i])) << sources[i].size();
  }
}

TEST(DeviceCopy, BytesArriveWhereThereIsADeviceForThem) {
  if (!mx::cu::is_available()) {
    std::vector<std::byte> bytes = noise(64, 1);
    EXPECT_FALSE(copy_to_device(bytes, {64}, mx::uint8).has_value());
    finish_device_copies();
    return;
  }
  copy_and_compare();
  finish_device_copies();  // nothing outstanding
  copy_and_compare();      // with new buffers
}

TEST(DeviceCopy, PageableMemoryGivesTheSameBytes) {
  if (!mx::cu::is_available()) {
    return;  // the test above says what holds then
  }
  setenv("MLXCEL_CUDA_PINNED_LOAD", "Off", 1);
  finish_device_copies();
  copy_and_compare();
  unsetenv("MLXCEL_CUDA_PINNED_LOAD");
}

}  // namespace
}  // namespace mlxcel::test
