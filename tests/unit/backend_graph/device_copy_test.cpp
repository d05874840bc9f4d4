#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "mlxcel/backend/factory.h"
#include "tests/unit/backend_graph/support/session.h"

/// Weights on the best device of this build: on a discrete one they go through
/// buffers of 64 MiB (backend/graph/device_copy.h), elsewhere they are read
/// where they lie.
namespace mlxcel::test {
namespace {

using backend::Backend;

constexpr int64_t kWidth = 1024;

// Rows of `count` numbers that tell where they stand.
LinearWeight numbered(const std::string& path, int64_t rows) {
  std::vector<std::byte> bytes(static_cast<size_t>(rows * kWidth) * 4);
  for (int64_t i = 0; i < rows * kWidth; ++i) {
    auto value = static_cast<float>(i % 16777213);
    std::memcpy(bytes.data() + 4 * i, &value, 4);
  }
  LinearWeight weight;
  weight.path = path;
  weight.rows = rows;
  weight.cols = kWidth;
  weight.format.dtype = DType::f32;
  weight.codes = {
      DType::f32,
      {rows, kWidth},
      Component::core,
      buffer_source(std::move(bytes), path)};
  return weight;
}

void expect_whole(Backend& graph, const std::vector<int64_t>& sizes) {
  std::vector<std::shared_ptr<const backend::EmbeddingSource>> tables;
  for (int64_t rows : sizes) {
    tables.push_back(graph.prepare_embedding(numbered("table", rows)));
  }
  graph.materialize();
  for (size_t i = 0; i < sizes.size(); ++i) {
    Session session(graph);
    // Each row of a buffer's end and start, and every hundredth.
    for (int64_t row = 0; row < sizes[i]; ++row) {
      if (row % 100 == 0 || (row + 2) % 16384 < 4 || row + 1 == sizes[i]) {
        session.tokens.push_back(static_cast<int32_t>(row));
      }
    }
    std::vector<int32_t> ids = session.tokens;
    std::vector<float> got =
        session.alone(static_cast<int64_t>(ids.size()), [&](Backend& b) {
          return b.embed(*tables[i], 1.0F);
        });
    ASSERT_EQ(got.size(), ids.size() * kWidth);
    size_t wrong = 0;
    for (size_t r = 0; r < ids.size(); ++r) {
      for (int64_t c = 0; c < kWidth; ++c) {
        int64_t at = ids[r] * kWidth + c;
        wrong += got[r * kWidth + static_cast<size_t>(c)] !=
                 static_cast<float>(at % 16777213);
      }
    }
    EXPECT_EQ(wrong, 0u) << sizes[i] << " rows";
  }
}

std::unique_ptr<Backend> best_graph() {
  for (const backend::BackendFactory& built : backend::built_backends()) {
    if (built.name == "graph") {
      return built.create(built.devices().back(), {.exact = true});
    }
  }
  return nullptr;
}

// 16384 rows are 64 MiB.
TEST(DeviceCopy, PlanesOfEverySizeArriveWhole) {
  auto graph = best_graph();
  ASSERT_NE(graph, nullptr);
  expect_whole(*graph, {1, 16383, 16384, 16385, 3, 3 * 16384 + 1});
  expect_whole(*graph, {5, 16384});  // once more, with new buffers
}

TEST(DeviceCopy, PageableMemoryGivesTheSameValues) {
  auto graph = best_graph();
  ASSERT_NE(graph, nullptr);
  setenv("MLXCEL_CUDA_PINNED_LOAD", "Off", 1);
  expect_whole(*graph, {16385, 7});
  unsetenv("MLXCEL_CUDA_PINNED_LOAD");
}

}  // namespace
}  // namespace mlxcel::test
