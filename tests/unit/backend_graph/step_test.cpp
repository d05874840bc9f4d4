#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "mlxcel/backend/factory.h"
#include "mlxcel/core/error.h"
#include "tests/unit/backend_graph/support/reference.h"
#include "tests/unit/backend_graph/support/session.h"

namespace mlxcel::test {

namespace {

using backend::Backend;
using backend::Batch;
using backend::Tensor;

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(GraphStep, ExportsWhatWasImported) {
  auto graph = make_built("graph", true);
  std::vector<float> values = {1, -2.5F, 3e30F, 0, 1e-30F, 7};
  Tensor tensor = graph->import_rows(values, 3, 2);
  EXPECT_EQ(tensor.rows(), 3);
  EXPECT_EQ(tensor.cols(), 2);
  std::vector<float> out(6);
  graph->export_rows(tensor, out);
  EXPECT_EQ(out, values);
}

TEST(GraphStep, AddsAndMultiplies) {
  auto graph = make_built("graph", true);
  std::vector<float> a = {1, 2, 3, 4};
  std::vector<float> b = {10, 20, 30, 40};
  Tensor sum =
      graph->add(graph->import_rows(a, 2, 2), graph->import_rows(b, 2, 2));
  std::vector<float> out(4);
  graph->export_rows(graph->multiply(graph->reduce(sum), 0.5F), out);
  EXPECT_EQ(out, (std::vector<float>{5.5F, 11, 16.5F, 22}));
}

TEST(GraphStep, TakesLogitRows) {
  auto graph = make_built("graph", true);
  Session session(*graph);
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  Piece piece{1, 3};
  auto body = [&](Backend& b) {
    return b.select_logit_rows(b.import_rows(x, 3, 2));
  };
  EXPECT_EQ(
      session.step({&piece, 1}, body, {}, {2, 0}),
      (std::vector<float>{5, 6, 1, 2})
  );
}

TEST(GraphStep, MakesNoLogitsWithoutRows) {
  auto graph = make_built("graph", true);
  auto pool = graph->make_pool({}, 1);
  RandomMatrix head = random_matrix("lm_head", 32, 64, affine(4, 64), 3);
  backend::WeightGroup group;
  group.parts.push_back(head.weight);
  auto weight = graph->prepare_linear(group);
  Batch batch;
  batch.tokens = {0, 1};
  batch.positions = {0, 1};
  batch.segments.push_back({.sequence = 1, .count = 2, .blocks = {}});
  graph->begin(batch, *pool);
  std::vector<float> x(2 * 64);
  Tensor rows = graph->select_logit_rows(graph->import_rows(x, 2, 64));
  EXPECT_EQ(rows.rows(), 0);
  Tensor logits = graph->logits(*weight, rows, 1.0F, 0.0F);
  EXPECT_EQ(logits.rows(), 0);
  EXPECT_EQ(logits.cols(), 32);
  graph->export_rows(logits, {});
  graph->argmax(logits, {});
  graph->end();
}

TEST(GraphStep, ScalesAndCapsLogits) {
  RandomMatrix head = random_matrix("lm_head", 33, 64, affine(4, 32), 3);
  std::vector<float> x = Random(5).uniform(2 * 64, 8.0F);
  auto graph = make_built("graph", true);
  backend::WeightGroup group;
  group.parts.push_back(head.weight);
  auto weight = graph->prepare_linear(group);
  for (double cap : {0.0, 5.0}) {
    Session session(*graph);
    std::vector<float> logits = session.alone(2, [&](Backend& b) {
      return b.logits(
          *weight, b.import_rows(x, 2, 64), 0.25F, static_cast<float>(cap)
      );
    });
    Doubles expected = reference_linear({&head, 1}, x);
    for (double& value : expected) {
      value *= 0.25;
      value = cap > 0 ? cap * std::tanh(value / cap) : value;
    }
    EXPECT_LE(relative_rms(logits, expected), 2e-6) << cap;
  }
}

TEST(GraphStep, ArgmaxTakesTheLowestOfEqualValues) {
  auto graph = make_built("graph", true);
  constexpr float low = -std::numeric_limits<float>::infinity();
  std::vector<float> x = {
      1,    3,     3,   2,    3,    // ties
      low,  low,   low, low,  low,  // nothing allowed
      0.0F, -0.0F, -1,  0.0F, -5,  -4, -3, -2, -1, -1,
  };
  std::vector<int32_t> ids(4);
  graph->argmax(graph->import_rows(x, 4, 5), ids);
  EXPECT_EQ(ids, (std::vector<int32_t>{1, 0, 0, 3}));

  std::vector<float> wide(70000, 1.0F);
  wide[40000] = wide[69999] = 2.0F;
  std::vector<int32_t> id(1);
  graph->argmax(graph->import_rows(wide, 1, 70000), id);
  EXPECT_EQ(id[0], 40000);
}

TEST(GraphStep, RefusesBatchesThatDoNotAddUp) {
  auto graph = make_built("graph", true);
  auto pool = graph->make_pool({}, 4);
  auto with = [&](const std::function<void(Batch&)>& change) {
    Batch batch;
    batch.tokens = {1, 2, 3};
    batch.positions = {0, 1, 2};
    batch.segments.push_back({.sequence = 1, .count = 3, .blocks = {}});
    change(batch);
    return message_of([&] {
      graph->begin(batch, *pool);
      graph->end();
      pool->truncate(1, 0);
    });
  };
  EXPECT_EQ(with([](Batch&) {}), "");
  EXPECT_NE(with([](Batch& b) { b.positions.pop_back(); }), "");
  EXPECT_NE(with([](Batch& b) { b.segments[0].count = 2; }), "");
  EXPECT_NE(with([](Batch& b) { b.segments[0].first = 1; }), "");
  EXPECT_NE(with([](Batch& b) { b.segments[0].position = 1; }), "");
  EXPECT_NE(with([](Batch& b) { b.logit_rows = {3}; }), "");
  EXPECT_NE(with([](Batch& b) { b.logit_rows = {-1}; }), "");
}

TEST(GraphStep, RefusesToGoOnBeyondWhatIsHeld) {
  auto graph = make_built("graph", true);
  auto pool = graph->make_pool({}, 4);
  auto append = [&](int64_t position) {
    Batch batch;
    batch.tokens = {1, 2};
    batch.positions = {0, 1};
    batch.segments.push_back(
        {.sequence = 1, .count = 2, .position = position, .blocks = {}}
    );
    return message_of([&] {
      graph->begin(batch, *pool);
      graph->end();
    });
  };
  EXPECT_EQ(append(0), "");
  EXPECT_EQ(append(2), "");
  EXPECT_NE(append(5), "");
  pool->truncate(1, 3);
  EXPECT_NE(append(4), "");
  EXPECT_EQ(append(3), "");
  pool->truncate(1, 9);
  EXPECT_NE(append(6), "");
  pool->truncate(1, 0);
  EXPECT_NE(append(1), "");
}

TEST(GraphStep, RefusesOperationsOutsideAStep) {
  auto graph = make_built("graph", true);
  RandomMatrix matrix = random_matrix("embed", 4, 64, affine(4, 64), 8);
  auto table = graph->prepare_embedding(matrix.weight);
  EXPECT_TRUE(message_of([&] { graph->embed(*table, 1.0F); }
  ).starts_with("[graph] step: "));
  EXPECT_TRUE(message_of([&] { graph->end(); }).starts_with("[graph] step: "));
}

TEST(GraphStep, NamesTheOperationThatMlxRefuses) {
  auto graph = make_built("graph", true);
  std::vector<float> x(6);
  Tensor a = graph->import_rows(x, 2, 3);
  Tensor b = graph->import_rows(x, 3, 2);
  EXPECT_TRUE(message_of([&] { graph->add(a, b); }).starts_with("[graph] add"));
}

// What is prepared on one thread runs on another, and on a third.
TEST(GraphStep, RunsOnAnyThread) {
  RandomMatrix matrix = random_matrix("m", 16, 64, affine(4, 64), 5);
  std::vector<float> x = Random(6).uniform(4 * 64);
  auto graph = make_built("graph", true);
  backend::WeightGroup group;
  group.parts.push_back(matrix.weight);
  auto weight = graph->prepare_linear(group);
  for (int i = 0; i < 2; ++i) {
    std::vector<float> out;
    std::thread([&] {
      Session session(*graph);
      out = session.alone(4, [&](Backend& b) {
        return b.linear(*weight, b.import_rows(x, 4, 64), {});
      });
    }).join();
    EXPECT_LE(relative_rms(out, reference_linear({&matrix, 1}, x)), 2e-6);
  }
}

TEST(GraphPool, CountsBytes) {
  backend::AttentionSpec spec;
  spec.kv_heads = 3;
  spec.key_dim = 16;
  spec.value_dim = 8;
  backend::StateLayout layout = attention_layout(spec, 2);
  layout.layers.emplace_back();
  constexpr uint64_t values = 2ULL * 3 * (16 + 8) * backend::kBlockTokens;
  auto exact = make_built("graph", true);
  auto pool = exact->make_pool(layout, 17);
  EXPECT_EQ(pool->blocks(), 17);
  EXPECT_EQ(pool->block_bytes(), 4 * values);
  auto fast = make_built("graph", false);
  fast->prepare_embedding(
      random_matrix("e", 4, 64, affine(4, 64, DType::bf16), 1).weight
  );
  EXPECT_EQ(fast->make_pool(layout, 17)->block_bytes(), 2 * values);
}

TEST(GraphFactory, ListsTheCpuAndRefusesOthers) {
  for (const backend::BackendFactory& factory : backend::built_backends()) {
    if (factory.name != "graph") {
      continue;
    }
    ASSERT_FALSE(factory.devices().empty());
    EXPECT_EQ(factory.devices()[0], "cpu");
    EXPECT_TRUE(factory.describe().starts_with("MLX 0.")) << factory.describe();
    EXPECT_EQ(
        message_of([&] { factory.create("abacus", {}); }).substr(0, 10),
        "\"abacus\": "
    );
    EXPECT_EQ(factory.create("cpu", {})->describe().find("graph: MLX"), 0);
  }
}

}  // namespace

}  // namespace mlxcel::test
