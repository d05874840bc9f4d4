#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "mlxcel/core/error.h"
#include "tests/unit/backend_graph/support/reference.h"
#include "tests/unit/backend_graph/support/session.h"

namespace mlxcel::test {

namespace {

using backend::AttentionSpec;
using backend::Backend;
using backend::HeadNorm;
using backend::RopeSpec;

constexpr double kExact = 3e-6;
constexpr double kHalf = 2e-2;  // bfloat16 activations

AttentionSpec spec_of(
    int64_t heads, int64_t kv_heads, int64_t key_dim, int64_t value_dim
) {
  AttentionSpec spec;
  spec.heads = heads;
  spec.kv_heads = kv_heads;
  spec.key_dim = key_dim;
  spec.value_dim = value_dim;
  spec.scale = 1.0F / std::sqrt(static_cast<float>(key_dim));
  return spec;
}

RopeSpec rope_of(int64_t dims, bool interleaved, float amplitude = 1.0F) {
  RopeSpec rope;
  rope.dims = dims;
  rope.interleaved = interleaved;
  rope.amplitude = amplitude;
  for (int64_t i = 0; i < dims / 2; ++i) {
    rope.inverse_frequencies.push_back(static_cast<float>(
        std::pow(1e4, -2.0 * static_cast<double>(i) / static_cast<double>(dims))
    ));
  }
  return rope;
}

int64_t width_of(const AttentionSpec& spec) {
  return spec.heads * spec.key_dim +
         spec.kv_heads * (spec.key_dim + spec.value_dim);
}

std::vector<int32_t> counting(int64_t tokens) {
  std::vector<int32_t> positions(tokens);
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

// Attention of a whole sequence, fed in the given pieces.
std::vector<float> in_pieces(
    Backend& backend,
    const AttentionSpec& spec,
    const std::vector<float>& qkv,
    const std::vector<int64_t>& counts,
    const std::vector<int32_t>& positions
) {
  auto layer = backend.prepare_attention(spec);
  Session session(backend, attention_layout(spec, spec.layer + 1));
  std::vector<float> all;
  int64_t width = width_of(spec);
  int64_t at = 0;
  for (int64_t count : counts) {
    Piece piece{1, count};
    std::span<const float> rows(&qkv[at * width], count * width);
    std::vector<float> out = session.step(
        {&piece, 1},
        [&](Backend& b) {
          return b.attend(*layer, b.import_rows(rows, count, width));
        },
        {positions.begin() + at, positions.begin() + at + count}
    );
    all.insert(all.end(), out.begin(), out.end());
    at += count;
  }
  return all;
}

struct Shape {
  const char* name;
  AttentionSpec spec;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all = {
      {"one_head", spec_of(1, 1, 16, 16)},
      {"every_head_its_own", spec_of(3, 3, 8, 8)},
      {"grouped", spec_of(6, 2, 32, 32)},
      {"one_for_all", spec_of(5, 1, 16, 16)},
      {"values_narrower", spec_of(4, 2, 24, 16)}};
  Shape rotated{"half_split", spec_of(4, 2, 32, 32)};
  rotated.spec.rope = rope_of(32, false);
  all.push_back(rotated);
  rotated.name = "interleaved";
  rotated.spec.rope = rope_of(32, true);
  all.push_back(rotated);
  rotated.name = "partial_half_split";
  rotated.spec.rope = rope_of(12, false, 1.25F);
  all.push_back(rotated);
  rotated.name = "partial_interleaved";
  rotated.spec.rope = rope_of(12, true, 0.75F);
  all.push_back(rotated);
  Shape window = rotated;
  window.name = "window";
  window.spec.window = 7;
  all.push_back(window);
  window.name = "window_of_one";
  window.spec.window = 1;
  all.push_back(window);
  window.name = "still_pairs";
  window.spec.window = 0;
  window.spec.rope->inverse_frequencies.back() = 0.0F;
  all.push_back(window);
  return all;
}

class GraphAttendShapes : public testing::TestWithParam<Shape> {};

TEST_P(GraphAttendShapes, MatchesDoubleInAnyPieces) {
  const AttentionSpec& spec = GetParam().spec;
  constexpr int64_t tokens = 40;
  std::vector<float> qkv = Random(11).uniform(tokens * width_of(spec), 2.0F);
  std::vector<int32_t> positions = counting(tokens);
  Doubles expected = reference_attention(spec, {}, {}, qkv, positions);
  for (const std::vector<int64_t>& pieces :
       {std::vector<int64_t>{tokens},
        {1, 2, 30, 1, 6},
        std::vector<int64_t>(tokens, 1)}) {
    auto exact = make_built("graph", true);
    EXPECT_LE(
        relative_rms(in_pieces(*exact, spec, qkv, pieces, positions), expected),
        kExact
    ) << pieces.size()
      << " pieces";
  }
}

INSTANTIATE_TEST_SUITE_P(
    All,
    GraphAttendShapes,
    testing::ValuesIn(shapes()),
    [](const testing::TestParamInfo<Shape>& param) { return param.param.name; }
);

TEST(GraphAttend, TakesAnyPositions) {
  AttentionSpec spec = spec_of(2, 2, 16, 16);
  spec.rope = rope_of(16, false);
  std::vector<int32_t> positions = {5, 5, 0, 1000, 131000, 2};
  std::vector<float> qkv = Random(12).uniform(6 * width_of(spec));
  auto graph = make_built("graph", true);
  // Angles are float32: at 131000 radians they are off by up to 2^-7.
  EXPECT_LE(
      relative_rms(
          in_pieces(*graph, spec, qkv, {6}, positions),
          reference_attention(spec, {}, {}, qkv, positions)
      ),
      5e-3
  );
}

TEST(GraphAttend, NormalisesHeads) {
  AttentionSpec spec = spec_of(4, 2, 16, 16);
  spec.rope = rope_of(16, false);
  Random random(13);
  std::vector<float> q_weight = random.uniform(16, 2.0F);
  std::vector<float> k_weight = random.uniform(16, 2.0F);
  Weight q_stored = float_weight(q_weight, {16}, DType::bf16);
  Weight k_stored = float_weight(k_weight, {16}, DType::bf16);
  std::vector<float> qkv = random.uniform(9 * width_of(spec));
  for (bool exact : {true, false}) {
    auto graph = make_built("graph", exact);
    spec.query_norm = HeadNorm{graph->prepare_vector(q_stored, 0.0F), 1e-2F};
    spec.key_norm = HeadNorm{graph->prepare_vector(k_stored, 0.0F), 1e-6F};
    EXPECT_LE(
        relative_rms(
            in_pieces(*graph, spec, qkv, {5, 4}, counting(9)),
            reference_attention(spec, q_weight, k_weight, qkv, counting(9))
        ),
        kExact
    );
  }
}

TEST(GraphAttend, MixesSequencesAndRoles) {
  AttentionSpec spec = spec_of(4, 2, 16, 16);
  spec.rope = rope_of(16, true);
  spec.window = 20;
  int64_t width = width_of(spec);
  const std::vector<std::vector<int64_t>> counts = {
      {7, 1, 1, 9}, {300, 40, 1, 1}, {1, 1, 1, 1}};
  std::vector<std::vector<float>> qkv;
  std::vector<Doubles> expected;
  for (size_t s = 0; s < counts.size(); ++s) {
    int64_t total = std::accumulate(counts[s].begin(), counts[s].end(), 0);
    qkv.push_back(Random(20 + s).uniform(total * width));
    expected.push_back(
        reference_attention(spec, {}, {}, qkv[s], counting(total))
    );
  }
  for (bool exact : {true, false}) {
    auto graph = make_built("graph", exact);
    // In default mode a table fixes the activations' type.
    graph->prepare_embedding(
        random_matrix("embed", 2, 64, affine(4, 64), 1).weight
    );
    auto layer = graph->prepare_attention(spec);
    Session session(*graph, attention_layout(spec));
    std::vector<std::vector<float>> got(counts.size());
    std::vector<int64_t> at(counts.size());
    for (size_t step = 0; step < 4; ++step) {
      std::vector<Piece> pieces;
      std::vector<float> rows;
      for (size_t s = 0; s < counts.size(); ++s) {
        int64_t count = counts[s][step];
        auto role =
            count == 1 ? backend::Role::generated : backend::Role::prompt;
        pieces.push_back({s, count, role});
        auto first = qkv[s].begin() + at[s] * width;
        rows.insert(rows.end(), first, first + count * width);
        at[s] += count;
      }
      int64_t total = static_cast<int64_t>(rows.size()) / width;
      std::vector<float> out = session.step(pieces, [&](Backend& b) {
        return b.attend(*layer, b.import_rows(rows, total, width));
      });
      auto next = out.begin();
      for (size_t s = 0; s < counts.size(); ++s) {
        auto last = next + counts[s][step] * 64;
        got[s].insert(got[s].end(), next, last);
        next = last;
      }
    }
    for (size_t s = 0; s < counts.size(); ++s) {
      EXPECT_LE(relative_rms(got[s], expected[s]), exact ? kExact : kHalf)
          << "sequence " << s << " exact " << exact;
    }
  }
}

TEST(GraphAttend, GoesOnFromATruncatedSequence) {
  AttentionSpec spec = spec_of(2, 1, 8, 8);
  spec.rope = rope_of(8, false);
  int64_t width = width_of(spec);
  std::vector<float> qkv = Random(14).uniform(30 * width);
  std::vector<float> other = Random(15).uniform(20 * width);
  auto graph = make_built("graph", true);
  auto layer = graph->prepare_attention(spec);
  Session session(*graph, attention_layout(spec));
  auto feed = [&](const std::vector<float>& rows, int64_t from, int64_t to) {
    Piece piece{9, to - from};
    std::span<const float> part(&rows[from * width], (to - from) * width);
    return session.step({&piece, 1}, [&](Backend& b) {
      return b.attend(*layer, b.import_rows(part, to - from, width));
    });
  };
  feed(qkv, 0, 12);
  feed(other, 0, 20);
  session.truncate(9, 12);
  std::vector<float> out = feed(qkv, 12, 30);
  Doubles expected = reference_attention(spec, {}, {}, qkv, counting(30));
  expected.erase(expected.begin(), expected.begin() + 12 * 16);
  EXPECT_LE(relative_rms(out, expected), kExact);

  session.truncate(9, 0);
  out = feed(other, 0, 20);
  EXPECT_LE(
      relative_rms(out, reference_attention(spec, {}, {}, other, counting(20))),
      kExact
  );
}

TEST(GraphAttend, GrowsWithASequence) {
  AttentionSpec spec = spec_of(1, 1, 8, 8);
  std::vector<float> qkv = Random(18).uniform(600 * width_of(spec));
  auto graph = make_built("graph", true);
  EXPECT_LE(
      relative_rms(
          in_pieces(*graph, spec, qkv, {250, 5, 1, 1, 243, 100}, counting(600)),
          reference_attention(spec, {}, {}, qkv, counting(600))
      ),
      kExact
  );
}

TEST(GraphAttend, KeepsLayersApart) {
  AttentionSpec spec = spec_of(1, 1, 8, 8);
  int64_t width = width_of(spec);
  std::vector<float> qkv = Random(16).uniform(6 * width);
  std::vector<float> other = Random(17).uniform(6 * width);
  auto graph = make_built("graph", true);
  auto first = graph->prepare_attention(spec);
  spec.layer = 1;
  auto second = graph->prepare_attention(spec);
  Session session(*graph, attention_layout(spec, 2));
  std::vector<float> all;
  for (int64_t at : {0, 3}) {
    Piece piece{1, 3};
    std::vector<float> out = session.step({&piece, 1}, [&](Backend& b) {
      std::span<const float> a(&qkv[at * width], 3 * width);
      std::span<const float> c(&other[at * width], 3 * width);
      b.attend(*first, b.import_rows(a, 3, width));
      return b.attend(*second, b.import_rows(c, 3, width));
    });
    all.insert(all.end(), out.begin(), out.end());
  }
  EXPECT_LE(
      relative_rms(all, reference_attention(spec, {}, {}, other, counting(6))),
      kExact
  );
}

TEST(GraphAttend, RefusesShapesThatCanNotBe) {
  auto graph = make_built("graph", true);
  EXPECT_THROW(graph->prepare_attention(spec_of(5, 2, 8, 8)), Error);
  AttentionSpec spec = spec_of(2, 1, 8, 8);
  spec.rope = rope_of(8, false);
  spec.rope->dims = 10;
  EXPECT_THROW(graph->prepare_attention(spec), Error);
  spec.rope->dims = 6;
  EXPECT_THROW(graph->prepare_attention(spec), Error);
}

}  // namespace

}  // namespace mlxcel::test
