#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "mlxcel/backend/cpu/cpu_backend.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/fault_guard.h"
#include "mlxcel/core/os.h"
#include "mlxcel/weights/safetensors.h"
#include "mlxcel/weights/safetensors_writer.h"
#include "tests/unit/backend_cpu/support/attention_case.h"

namespace mlxcel::test {

namespace {

using backend::Backend;
using backend::Tensor;
using backend::cpu::CpuBackend;

constexpr int64_t kRows = 512;
constexpr int64_t kCols = 256;

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    return error.message();
  }
  return "";
}

// A file of one matrix of ones that can be cut while it is in use.
class CpuFault : public testing::Test {
 protected:
  CpuFault() {
    FaultGuard::install();
    std::filesystem::create_directory(directory);
    SafetensorsWriter writer(
        directory, {{"up.weight", "F32", {kRows, kCols}, kRows * kCols * 4}}
    );
    std::vector<float> ones(kRows * kCols, 1.0F);
    writer.write(ones.data(), ones.size() * sizeof(float));
    writer.finish();
    load_safetensors(file, weights);
    weight = bind_linear(weights, "up", kRows, kCols, {});
  }
  ~CpuFault() override {
    std::filesystem::remove_all(directory);
  }

  std::vector<float> step() {
    std::vector<float> x(kCols, 1.0F);
    return session.alone(1, [&](Backend& b) {
      return b.linear(*linear, b.import_rows(x, 1, kCols), {});
    });
  }

  std::string directory =
      testing::TempDir() + "mlxcel_fault_" + os::random_suffix();
  std::string file = directory + "/model.safetensors";
  WeightMap weights;
  LinearWeight weight;
  ThreadPool pool{2};
  CpuBackend cpu{cpu_options(backend::cpu::chosen_isa(), true), pool};
  std::shared_ptr<const backend::PreparedLinear> linear;
  Session session{cpu};
};

TEST_F(CpuFault, AFileCutWhileInUseFailsTheStepAndAllLaterOnes) {
  linear = cpu.prepare_linear({{weight}});
  cpu.materialize();
  EXPECT_EQ(step(), std::vector<float>(kRows, float{kCols}));
  std::filesystem::resize_file(file, 4096);
  for (int i = 0; i < 3; ++i) {
    std::string message = message_of([&] { step(); });
    EXPECT_NE(message.find(file), std::string::npos) << message;
    EXPECT_NE(message.find("load the model again"), std::string::npos)
        << message;
  }
}

TEST_F(CpuFault, OtherWeightsOfTheProcessGoOn) {
  linear = cpu.prepare_linear({{weight}});
  std::filesystem::resize_file(file, 4096);
  EXPECT_NE(message_of([&] { step(); }), "");
  CpuBackend other(cpu_options(backend::cpu::chosen_isa(), true), pool);
  auto vector = std::make_shared<backend::cpu::CpuVector>();
  Session fresh(other);
  std::vector<float> x = {3.0F, 4.0F};
  std::vector<float> out = fresh.alone(1, [&](Backend& b) {
    return b.multiply(b.import_rows(x, 1, 2), 2.0F);
  });
  EXPECT_EQ(out, (std::vector<float>{6.0F, 8.0F}));
}

TEST_F(CpuFault, AnEmbeddingInACutFileFailsTheStep) {
  auto table = cpu.prepare_embedding(weight);
  cpu.materialize();
  std::filesystem::resize_file(file, 4096);
  session.tokens = {static_cast<int32_t>(kRows - 1)};
  std::string message = message_of([&] {
    session.alone(1, [&](Backend& b) { return b.embed(*table, 1.0F); });
  });
  EXPECT_NE(message.find(file), std::string::npos) << message;
}

}  // namespace

}  // namespace mlxcel::test
