#include "mlxcel/weights/weight_files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "mlxcel/core/fault_guard.h"
#include "mlxcel/weights/safetensors.h"
#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSize = 64 << 10;

std::string file_of(char fill) {
  return safetensors_file({{"w", "U8", {kSize}, std::string(kSize, fill)}});
}

class WeightFilesTest : public testing::Test {
 protected:
  WeightFilesTest() {
    FaultGuard::install();
    path = dir.write("m.safetensors", file_of('a'));
    load_safetensors(path, weights);
    files.add(weights.at("w"));
    files.add(weights.at("w"));
  }
  void expect_broken(const std::string& why) {
    for (int i = 0; i < 2; ++i) {
      expect_error(
          [&] { files.check(); },
          ErrorCode::io,
          {path, why, "load the model again"}
      );
    }
  }
  // The clock of a file system ticks some hundred times a second.
  static void wait() {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  char first() const {
    return static_cast<char>(weights.at("w").bytes()[0]);
  }

  TempDir dir;
  std::string path;
  WeightMap weights;
  WeightFiles files;
};

TEST_F(WeightFilesTest, GoodFilesPass) {
  EXPECT_NO_THROW(files.check());
  wait();
  EXPECT_NO_THROW(files.check());
}

TEST_F(WeightFilesTest, CutFileIsNamedOnceItIsRead) {
  fs::resize_file(path, 4096);
  volatile std::byte last = weights.at("w").bytes()[kSize - 1];
  EXPECT_EQ(static_cast<int>(last), 0);
  expect_broken("could not be read");
}

// Without a fault: the rest of the last page reads as zero.
TEST_F(WeightFilesTest, CutWithinTheLastPageIsNoticed) {
  fs::resize_file(path, fs::file_size(path) - 1);
  EXPECT_EQ(static_cast<int>(weights.at("w").bytes()[kSize - 1]), 0);
  expect_broken("was written to");
}

TEST_F(WeightFilesTest, WritingIntoTheFileIsNoticed) {
  wait();
  dir.write("m.safetensors", file_of('b'));
  expect_broken("was written to");
}

// A name that another file takes leaves the weights as they are.
TEST_F(WeightFilesTest, ReplacedAndRemovedFilesGoOn) {
  fs::rename(dir.write("new", file_of('b')), path);
  wait();
  EXPECT_NO_THROW(files.check());
  EXPECT_EQ(first(), 'a');
  fs::remove(path);
  wait();
  EXPECT_NO_THROW(files.check());
}

TEST(WeightFiles, WeightsInMemoryHaveNoFile) {
  WeightFiles files;
  files.add(make_weight<float>(DType::f32, {1}, {1.0F}));
  EXPECT_NO_THROW(files.check());
}

}  // namespace
}  // namespace mlxcel::test
