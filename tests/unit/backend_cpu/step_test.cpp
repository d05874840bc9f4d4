#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "mlxcel/backend/cpu/cpu_backend.h"
#include "mlxcel/core/error.h"
#include "tests/unit/backend_cpu/support/attention_case.h"
#include "tests/unit/backend_graph/support/random_weights.h"
#include "tests/unit/backend_graph/support/reference.h"

namespace mlxcel::test {

namespace {

using backend::Backend;
using backend::Batch;
using backend::Epilogue;
using backend::Role;
using backend::StatePool;
using backend::Tensor;
using backend::WeightGroup;
using backend::cpu::CpuBackend;
using backend::cpu::Isa;

constexpr double kExact = 2e-6;

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

class CpuStep : public testing::Test {
 protected:
  ThreadPool pool{2};
  CpuBackend exact{cpu_options(backend::cpu::chosen_isa(), true), pool};
  CpuBackend standard{cpu_options(backend::cpu::chosen_isa(), false), pool};
};

TEST_F(CpuStep, DescribesItself) {
  std::string isa(isa_name(backend::cpu::chosen_isa()));
  EXPECT_EQ(exact.describe(), "cpu: " + isa + ", 2 threads");
  EXPECT_TRUE(exact.numerics().exact);
  EXPECT_FALSE(standard.numerics().exact);
}

TEST_F(CpuStep, SupportsWhatItHasKernelsFor) {
  using backend::Operation;
  EXPECT_TRUE(exact.supports(Operation::linear, affine(4, 64)));
  EXPECT_TRUE(exact.supports(Operation::embed, dense(DType::bf16)));
  EXPECT_TRUE(exact.supports(Operation::norm, dense(DType::f16)));
  EXPECT_FALSE(exact.supports(Operation::norm, affine(4, 64)));
  WeightFormat mxfp4{QuantMode::mxfp4, DType::u8, 4, 32};
  EXPECT_TRUE(exact.supports(Operation::linear, mxfp4));
  WeightFormat wide{QuantMode::mxfp4, DType::u8, 4, 64};
  EXPECT_FALSE(exact.supports(Operation::linear, wide));
  RandomMatrix table = random_matrix("embed", 8, 64, affine(4, 64), 1);
  table.weight.format = wide;
  std::string message =
      message_of([&] { exact.prepare_embedding(table.weight); });
  EXPECT_NE(message.find("[embed] mxfp4"), std::string::npos) << message;
}

TEST_F(CpuStep, ExportsWhatWasImported) {
  std::vector<float> values = {1, -2.5F, 3e30F, 0, 1e-30F, 7};
  Tensor tensor = exact.import_rows(values, 3, 2);
  std::vector<float> out(6);
  exact.export_rows(tensor, out);
  EXPECT_EQ(out, values);
  std::vector<float> small(5);
  EXPECT_THROW(exact.export_rows(tensor, small), Error);
  EXPECT_THROW(exact.import_rows(values, 2, 2), Error);
}

TEST_F(CpuStep, AddsMultipliesAndReduces) {
  std::vector<float> a = {1, 2, 3, 4};
  std::vector<float> b = {10, 20, 30, 40};
  Tensor left = exact.import_rows(a, 2, 2);
  Tensor sum = exact.add(left, exact.import_rows(b, 2, 2));
  std::vector<float> out(4);
  exact.export_rows(exact.multiply(exact.reduce(sum), 0.5F), out);
  EXPECT_EQ(out, (std::vector<float>{5.5F, 11, 16.5F, 22}));
  EXPECT_THROW(exact.add(left, exact.import_rows(b, 1, 4)), Error);
}

TEST_F(CpuStep, EmbedsAndNamesATokenOutOfRange) {
  RandomMatrix table = random_matrix("embed_tokens", 50, 64, affine(4, 32), 4);
  auto source = exact.prepare_embedding(table.weight);
  EXPECT_EQ(source->vocabulary(), 50);
  EXPECT_EQ(source->width(), 64);
  Session session(exact);
  auto body = [&](Backend& b) { return b.embed(*source, 3.0F); };
  session.tokens = {49, 0, 7, 7};
  std::vector<float> rows = session.alone(4, body);
  Doubles expected;
  for (int32_t id : session.tokens) {
    for (int64_t i = 0; i < 64; ++i) {
      expected.push_back(3.0 * table.values[static_cast<size_t>(id * 64 + i)]);
    }
  }
  EXPECT_LE(relative_rms(rows, expected), kExact);
  for (int32_t id : {50, -1}) {
    session.tokens = {id};
    std::string message = message_of([&] { session.alone(1, body); });
    EXPECT_EQ(
        message,
        "[embed_tokens] token " + std::to_string(id) + " is not below 50"
    );
  }
}

// A long list of tokens is gathered by several threads.
TEST_F(CpuStep, EmbedsManyTokens) {
  RandomMatrix table = random_matrix("embed", 64, 128, dense(DType::f32), 4);
  auto source = exact.prepare_embedding(table.weight);
  Session session(exact);
  for (int32_t i = 0; i < 1000; ++i) {
    session.tokens.push_back(i * 7 % 64);
  }
  std::vector<float> rows =
      session.alone(1000, [&](Backend& b) { return b.embed(*source, 1.0F); });
  for (size_t i = 0; i < rows.size(); ++i) {
    auto id = static_cast<size_t>(session.tokens[i / 128]);
    ASSERT_EQ(rows[i], static_cast<float>(table.values[id * 128 + i % 128]));
  }
}

// Prompt and generated rows of a step go through the kernels of their role:
// with the same bits as in a step of their own.
TEST_F(CpuStep, ARowsKernelFollowsItsRole) {
  RandomMatrix matrix = random_matrix("proj", 96, 256, affine(4, 64), 6);
  auto weight = standard.prepare_linear({{matrix.weight}});
  std::vector<float> x = Random(7).uniform(7 * 256);
  std::vector<float> residual = Random(8).uniform(7 * 96);
  std::vector<Piece> pieces = {
      {1, 2, Role::prompt},
      {2, 1, Role::generated},
      {3, 1, Role::generated},
      {4, 3, Role::prompt},
  };
  auto rows_of = [&](int64_t first, int64_t count) {
    return [&, first, count](Backend& b) {
      std::span<const float> in(
          &x[static_cast<size_t>(first * 256)], count * 256
      );
      std::span<const float> rest(
          &residual[static_cast<size_t>(first * 96)], count * 96
      );
      Tensor more = b.import_rows(rest, count, 96);
      Epilogue epilogue;
      epilogue.residual = &more;
      return b.linear(*weight, b.import_rows(in, count, 256), epilogue);
    };
  };
  Session together(standard);
  std::vector<float> mixed = together.step(pieces, rows_of(0, 7));
  Session apart(standard);
  std::vector<float> single;
  int64_t first = 0;
  for (Piece& piece : pieces) {
    std::vector<float> out =
        apart.step({&piece, 1}, rows_of(first, piece.count));
    single.insert(single.end(), out.begin(), out.end());
    first += piece.count;
  }
  EXPECT_EQ(mixed, single);
  Doubles expected = reference_linear({&matrix, 1}, x);
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i] += residual[i];
  }
  EXPECT_LE(relative_rms(mixed, expected), 2e-2);
}

// Logit rows may repeat, come in any order and follow the role of their row.
TEST_F(CpuStep, LogitsOfChosenRows) {
  RandomMatrix head = random_matrix("lm_head", 77, 128, affine(4, 64), 3);
  std::vector<float> x = Random(5).uniform(4 * 128, 8.0F);
  std::vector<Piece> pieces = {{1, 3, Role::prompt}, {2, 1, Role::generated}};
  for (float cap : {0.0F, 5.0F}) {
    for (CpuBackend* on : {&exact, &standard}) {
      auto weight = on->prepare_linear({{head.weight}});
      auto body = [&](Backend& b) {
        Tensor rows = b.select_logit_rows(b.import_rows(x, 4, 128));
        Tensor same = b.multiply(b.add(rows, rows), 0.5F);
        return b.logits(*weight, same, 0.25F, cap);
      };
      Session session(*on);
      std::vector<float> all = session.step(pieces, body);
      std::vector<float> some = Session(*on).step(pieces, body, {}, {3, 0, 3});
      std::vector<float> chosen(all.begin() + 3 * 77, all.end());
      chosen.insert(chosen.end(), all.begin(), all.begin() + 77);
      chosen.insert(chosen.end(), all.begin() + 3 * 77, all.end());
      EXPECT_EQ(some, chosen);
      Doubles expected = reference_linear({&head, 1}, x);
      for (double& value : expected) {
        value *= 0.25;
        value = cap > 0 ? cap * std::tanh(value / cap) : value;
      }
      bool rough = on == &standard;
      EXPECT_LE(relative_rms(all, expected), rough ? 2e-2 : kExact) << cap;
    }
  }
}

TEST_F(CpuStep, NoLogitRowsNoLogits) {
  RandomMatrix head = random_matrix("lm_head", 32, 64, affine(4, 64), 3);
  auto weight = exact.prepare_linear({{head.weight}});
  auto pool_of_none = exact.make_pool({}, 0);
  Batch batch;
  batch.tokens = {0, 1};
  batch.positions = {0, 1};
  batch.segments.push_back({.sequence = 1, .count = 2, .blocks = {}});
  exact.begin(batch, *pool_of_none);
  std::vector<float> x(2 * 64);
  Tensor rows = exact.select_logit_rows(exact.import_rows(x, 2, 64));
  EXPECT_EQ(rows.rows(), 0);
  Tensor normed =
      exact.norm(backend::NormKind::rms, rows, nullptr, nullptr, 1e-5F);
  Tensor logits = exact.logits(*weight, normed, 2.0F, 30.0F);
  EXPECT_EQ(logits.rows(), 0);
  EXPECT_EQ(logits.cols(), 32);
  exact.export_rows(logits, {});
  exact.argmax(logits, {});
  exact.end();
}

TEST_F(CpuStep, RefusesBatchesThatDoNotAddUp) {
  backend::StateLayout layout = attention_layout(attention_spec(2, 1, 8, 8));
  auto state = exact.make_pool(layout, 4);
  std::vector<int32_t> blocks = {3, 0};
  auto with = [&](const std::function<void(Batch&)>& change) {
    Batch batch;
    batch.tokens.resize(40);
    batch.positions.resize(40);
    batch.segments.push_back({.sequence = 9, .count = 40, .blocks = blocks});
    change(batch);
    return message_of([&] {
      exact.begin(batch, *state);
      exact.end();
    });
  };
  EXPECT_EQ(with([](Batch&) {}), "");
  EXPECT_EQ(
      with([](Batch& b) {
        b.tokens.clear();
        b.positions.clear();
        b.segments.clear();
      }),
      "[batch] a step without tokens"
  );
  EXPECT_EQ(
      with([](Batch& b) { b.positions.pop_back(); }),
      "[batch] 39 positions, 40 tokens"
  );
  EXPECT_EQ(
      with([](Batch& b) { b.segments[0].count = 39; }),
      "[batch] segments cover 39 rows of 40"
  );
  EXPECT_EQ(
      with([](Batch& b) { b.segments[0].count = 41; }),
      "[batch] segments don't cover the rows: row 0"
  );
  EXPECT_EQ(
      with([](Batch& b) { b.segments[0].first = 1; }),
      "[batch] segments don't cover the rows: row 0"
  );
  EXPECT_EQ(
      with([](Batch& b) { b.segments[0].position = 25; }),
      "[batch] sequence 9: 2 blocks for 65 tokens"
  );
  EXPECT_EQ(
      with([&](Batch& b) {
        blocks[1] = 4;
        b.segments[0].blocks = blocks;
      }),
      "[batch] sequence 9: block 4 of 4"
  );
  blocks[1] = 0;
  EXPECT_EQ(
      with([](Batch& b) { b.logit_rows = {40}; }), "[batch] logit row 40 of 40"
  );
  EXPECT_EQ(with([](Batch& b) { b.logit_rows = {39, 0, 0}; }), "");
}

TEST_F(CpuStep, RefusesShapesThatDoNotFit) {
  RandomMatrix matrix = random_matrix("layer.proj", 32, 64, affine(4, 64), 3);
  auto weight = exact.prepare_linear({{matrix.weight}});
  std::vector<float> x(2 * 64);
  std::string outside = message_of([&] {
    exact.linear(*weight, exact.import_rows(x, 2, 64), {});
  });
  EXPECT_EQ(outside, "[linear] called outside a step");
  Session session(exact);
  std::string rows = message_of([&] {
    session.alone(3, [&](Backend& b) {
      return b.linear(*weight, b.import_rows(x, 2, 64), {});
    });
  });
  EXPECT_EQ(rows, "[layer.proj] an input of 2 x 64, expected 3 x 64");
  // A step that failed half-way does not spoil the next.
  std::vector<float> out = Session(exact).alone(2, [&](Backend& b) {
    return b.linear(*weight, b.import_rows(x, 2, 64), {});
  });
  EXPECT_EQ(out, std::vector<float>(2 * 32));
}

TEST_F(CpuStep, RefusesAttentionThatDoesNotFit) {
  auto with = [&](const std::function<void(backend::AttentionSpec&)>& change) {
    backend::AttentionSpec spec = attention_spec(6, 2, 16, 16);
    spec.layer = 5;
    spec.rope = rope_spec(8, false);
    change(spec);
    return message_of([&] { exact.prepare_attention(spec); });
  };
  EXPECT_EQ(with([](auto&) {}), "");
  EXPECT_EQ(
      with([](auto& spec) { spec.kv_heads = 4; }),
      "[attention] layer 5: 6 heads, 4 kv heads of 16 and 16 values, window 0"
  );
  EXPECT_EQ(
      with([](auto& spec) { spec.rope->dims = 10; }),
      "[attention] layer 5: 10 rotary dims, 4 frequencies"
  );
  EXPECT_EQ(
      with([](auto& spec) { spec.rope = rope_spec(18, false); }),
      "[attention] layer 5: 18 rotary dims, 9 frequencies"
  );
  EXPECT_NE(with([](auto& spec) { spec.window = -1; }), "");
  EXPECT_NE(with([](auto& spec) { spec.value_dim = 0; }), "");
  EXPECT_NE(with([](auto& spec) { spec.key_norm = backend::HeadNorm(); }), "");
}

TEST_F(CpuStep, VectorsTakeTheirOffset) {
  std::vector<float> values = {0.5F, -1.0F, 0.25F};
  Weight weight = float_weight(values, {3}, DType::bf16, 1);
  auto plain = exact.prepare_vector(weight, 0.0F);
  EXPECT_EQ(plain->size, 3);
  auto shifted = exact.prepare_vector(weight, 1.0F);
  EXPECT_EQ(
      static_cast<const backend::cpu::CpuVector&>(*shifted).values,
      (std::vector<float>{1.5F, 0.0F, 1.25F})
  );
}

}  // namespace

}  // namespace mlxcel::test
