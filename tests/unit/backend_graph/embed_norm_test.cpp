#include <gtest/gtest.h>

#include <cmath>

#include "mlxcel/core/error.h"
#include "tests/unit/backend_graph/support/reference.h"
#include "tests/unit/backend_graph/support/session.h"

namespace mlxcel::test {

namespace {

using backend::Backend;
using backend::NormKind;

Doubles rows_of(
    const RandomMatrix& matrix, const std::vector<int32_t>& ids, double scale
) {
  Doubles rows;
  for (int32_t id : ids) {
    for (int64_t i = 0; i < matrix.weight.cols; ++i) {
      rows.push_back(scale * matrix.values[id * matrix.weight.cols + i]);
    }
  }
  return rows;
}

TEST(GraphEmbed, GathersAndScalesRowsOfEveryFormat) {
  const std::vector<int32_t> ids = {3, 0, 30, 3};
  for (const WeightFormat& format :
       {dense(DType::f32),
        dense(DType::f16),
        dense(DType::bf16),
        affine(1, 64),
        affine(2, 32),
        affine(3, 64, DType::f16),
        affine(4, 64),
        affine(5, 128),
        affine(6, 64, DType::f32),
        affine(8, 32),
        WeightFormat{QuantMode::mxfp4, DType::u8, 4, 32},
        WeightFormat{QuantMode::mxfp8, DType::u8, 8, 32},
        WeightFormat{QuantMode::nvfp4, DType::u8, 4, 16}}) {
    RandomMatrix matrix =
        random_matrix("embed", 31, 128, format, 8, {.offset = 3});
    Doubles expected = rows_of(matrix, ids, 1.5);
    for (bool exact : {true, false}) {
      auto graph = make_built("graph", exact);
      auto table = graph->prepare_embedding(matrix.weight);
      EXPECT_EQ(table->vocabulary(), 31);
      EXPECT_EQ(table->width(), 128);
      Session session(*graph);
      session.tokens = ids;
      std::vector<float> rows =
          session.alone(4, [&](Backend& b) { return b.embed(*table, 1.5F); });
      EXPECT_LE(relative_rms(rows, expected), exact ? 1e-7 : 6e-3)
          << format.describe();

      std::vector<float> plain(4 * 128);
      table->gather(ids, plain.data());
      EXPECT_LE(
          relative_rms(plain, rows_of(matrix, ids, 1.0)), exact ? 1e-7 : 6e-3
      ) << format.describe();
    }
  }
}

TEST(GraphEmbed, RefusesTokensOutsideTheVocabulary) {
  RandomMatrix matrix =
      random_matrix("model.embed_tokens", 31, 64, affine(4, 64), 8);
  auto graph = make_built("graph", false);
  auto table = graph->prepare_embedding(matrix.weight);
  for (int32_t id : {-1, 31}) {
    Session session(*graph);
    session.tokens = {id};
    try {
      session.alone(1, [&](Backend& b) { return b.embed(*table, 1.0F); });
      FAIL();
    } catch (const Error& error) {
      EXPECT_TRUE(error.message().starts_with("model.embed_tokens: token "))
          << error.what();
    }
  }
}

class CountingSource final : public backend::EmbeddingSource {
 public:
  int64_t vocabulary() const override {
    return 100;
  }
  int64_t width() const override {
    return 2;
  }
  void gather(std::span<const int32_t> ids, float* out) const override {
    for (int32_t id : ids) {
      *out++ = static_cast<float>(id);
      *out++ = static_cast<float>(-id);
    }
  }
};

TEST(GraphEmbed, TakesRowsFromAnySource) {
  auto graph = make_built("graph", true);
  Session session(*graph);
  session.tokens = {7, 99};
  EXPECT_EQ(
      session.alone(
          2, [](Backend& b) { return b.embed(CountingSource(), 2.0F); }
      ),
      (std::vector<float>{14, -14, 198, -198})
  );
}

TEST(GraphNorm, MatchesDouble) {
  constexpr int64_t cols = 48;
  Random random(9);
  std::vector<float> x = random.uniform(3 * cols, 4.0F);
  for (float& value : x) {
    value += 0.5F;
  }
  std::vector<float> weight = random.uniform(cols);
  std::vector<float> bias = random.uniform(cols);
  Weight stored = float_weight(weight, {cols}, DType::bf16);
  Weight stored_bias = float_weight(bias, {cols}, DType::f16);
  std::vector<float> shifted = weight;
  for (float& value : shifted) {
    value += 1.0F;
  }
  for (bool exact : {true, false}) {
    auto graph = make_built("graph", exact);
    auto w = graph->prepare_vector(stored, 1.0F);
    auto b = graph->prepare_vector(stored_bias, 0.0F);
    EXPECT_EQ(w->size, cols);
    Session session(*graph);
    auto run = [&](NormKind kind, bool weighted) {
      return session.alone(3, [&](Backend& on) {
        return on.norm(
            kind,
            on.import_rows(x, 3, cols),
            weighted ? w.get() : nullptr,
            weighted && kind == NormKind::layer ? b.get() : nullptr,
            1e-3F
        );
      });
    };
    for (NormKind kind : {NormKind::rms, NormKind::layer}) {
      std::vector<float> none;
      const std::vector<float>& added = kind == NormKind::layer ? bias : none;
      EXPECT_LE(
          relative_rms(
              run(kind, true),
              reference_norm(kind, x, cols, shifted, added, 1e-3)
          ),
          1e-6
      );
      EXPECT_LE(
          relative_rms(
              run(kind, false), reference_norm(kind, x, cols, {}, {}, 1e-3)
          ),
          1e-6
      );
    }
  }
}

}  // namespace

}  // namespace mlxcel::test
