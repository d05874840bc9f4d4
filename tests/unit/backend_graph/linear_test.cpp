#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "mlxcel/backend/factory.h"
#include "mlxcel/core/error.h"
#include "tests/unit/backend_graph/support/reference.h"
#include "tests/unit/backend_graph/support/session.h"

namespace mlxcel::test {

namespace {

using backend::Activation;
using backend::Backend;
using backend::Epilogue;
using backend::Tensor;
using backend::WeightGroup;

constexpr double kExact = 2e-6;
constexpr double kHalf = 2e-2;  // bfloat16 activations

std::vector<WeightFormat> formats() {
  std::vector<WeightFormat> all;
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    all.push_back(dense(dtype));
    for (int bits : {1, 2, 3, 4, 5, 6, 8}) {
      for (int group : {32, 64, 128}) {
        all.push_back(affine(bits, group, dtype));
      }
    }
  }
  all.push_back({QuantMode::mxfp4, DType::u8, 4, 32});
  all.push_back({QuantMode::mxfp8, DType::u8, 8, 32});
  all.push_back({QuantMode::nvfp4, DType::u8, 4, 16});
  return all;
}

std::vector<float> run_linear(
    Backend& backend,
    std::span<const RandomMatrix> parts,
    const std::vector<float>& x,
    const Epilogue& epilogue = {},
    const std::vector<float>& residual = {}
) {
  WeightGroup group;
  for (const RandomMatrix& part : parts) {
    group.parts.push_back(part.weight);
  }
  auto weight = backend.prepare_linear(group);
  backend.materialize();
  int64_t cols = group.parts[0].cols;
  int64_t rows = static_cast<int64_t>(x.size()) / cols;
  Session session(backend);
  return session.alone(rows, [&](Backend& b) {
    Epilogue with = epilogue;
    Tensor added;
    if (!residual.empty()) {
      added = b.import_rows(
          residual, rows, static_cast<int64_t>(residual.size()) / rows
      );
      with.residual = &added;
    }
    return b.linear(*weight, b.import_rows(x, rows, cols), with);
  });
}

class GraphLinearFormats : public testing::TestWithParam<WeightFormat> {};

TEST_P(GraphLinearFormats, MatchesDouble) {
  for (bool bias : {false, true}) {
    for (size_t offset : {0, 1, 2, 5}) {
      RandomMatrix matrix =
          random_matrix("m", 19, 256, GetParam(), 7, {bias, offset});
      std::vector<float> x = Random(3).uniform(5 * 256);
      Doubles expected = reference_linear({&matrix, 1}, x);
      auto exact = make_built("graph", true);
      EXPECT_LE(
          relative_rms(run_linear(*exact, {&matrix, 1}, x), expected), kExact
      ) << "bias "
        << bias << " offset " << offset;
      auto fast = make_built("graph", false);
      EXPECT_LE(
          relative_rms(run_linear(*fast, {&matrix, 1}, x), expected), kHalf
      ) << "bias "
        << bias << " offset " << offset;
    }
  }
}

TEST_P(GraphLinearFormats, IsSupported) {
  auto graph = make_built("graph", true);
  EXPECT_TRUE(graph->supports(backend::Operation::linear, GetParam()));
  EXPECT_TRUE(graph->supports(backend::Operation::embed, GetParam()));
}

INSTANTIATE_TEST_SUITE_P(
    All,
    GraphLinearFormats,
    testing::ValuesIn(formats()),
    [](const testing::TestParamInfo<WeightFormat>& param) {
      std::string name = param.param.describe();
      name += param.param.mode == QuantMode::affine
                  ? " " + std::string(dtype_name(param.param.dtype))
                  : "";
      std::replace_if(
          name.begin(), name.end(), [](char c) { return !isalnum(c); }, '_'
      );
      return name;
    }
);

TEST(GraphLinear, MergesPartsOfMixedWidths) {
  std::vector<RandomMatrix> parts = {
      random_matrix("q", 24, 128, affine(4, 64), 1, {.bias = true}),
      random_matrix("k", 8, 128, affine(6, 32, DType::f16), 2),
      random_matrix("v", 9, 128, dense(DType::bf16), 3, {.bias = true})};
  std::vector<float> x = Random(4).uniform(3 * 128);
  auto graph = make_built("graph", true);
  EXPECT_LE(
      relative_rms(run_linear(*graph, parts, x), reference_linear(parts, x)),
      kExact
  );
}

TEST(GraphLinear, AppliesActivations) {
  RandomMatrix matrix = random_matrix("m", 40, 64, dense(DType::f32), 5);
  std::vector<float> x = Random(6).uniform(4 * 64);
  auto graph = make_built("graph", true);
  for (Activation activation :
       {Activation::silu,
        Activation::gelu,
        Activation::gelu_tanh,
        Activation::relu}) {
    Doubles expected = reference_linear({&matrix, 1}, x);
    for (double& value : expected) {
      value = reference_activation(activation, value);
    }
    Epilogue epilogue{.activation = activation, .gate = {}};
    EXPECT_LE(
        relative_rms(run_linear(*graph, {&matrix, 1}, x, epilogue), expected),
        kExact
    ) << static_cast<int>(activation);
  }
}

TEST(GraphLinear, GatesTwoPartsAndOneWhole) {
  std::vector<RandomMatrix> parts = {
      random_matrix("gate", 40, 64, affine(4, 32), 1),
      random_matrix("up", 40, 64, affine(8, 64), 2)};
  std::vector<float> x = Random(6).uniform(3 * 64);
  Doubles both = reference_linear(parts, x);
  Doubles expected;
  for (size_t t = 0; t < 3; ++t) {
    for (size_t i = 0; i < 40; ++i) {
      double gate =
          reference_activation(Activation::gelu_tanh, both[t * 80 + i]);
      expected.push_back(gate * both[t * 80 + 40 + i]);
    }
  }
  auto graph = make_built("graph", true);
  Epilogue epilogue{.activation = {}, .gate = Activation::gelu_tanh};
  EXPECT_LE(
      relative_rms(run_linear(*graph, parts, x, epilogue), expected), kExact
  );

  std::vector<float> joint(80 * 64);
  for (size_t i = 0; i < joint.size(); ++i) {
    size_t half = joint.size() / 2;
    joint[i] = static_cast<float>(
        i < half ? parts[0].values[i] : parts[1].values[i - half]
    );
  }
  RandomMatrix whole = random_matrix("both", 80, 64, dense(DType::f32), 1);
  whole.weight.codes = float_weight(joint, {80, 64}, DType::f32);
  EXPECT_LE(
      relative_rms(run_linear(*graph, {&whole, 1}, x, epilogue), expected),
      kExact
  );
}

TEST(GraphLinear, AddsResidual) {
  RandomMatrix matrix = random_matrix("m", 16, 64, affine(4, 64), 5);
  std::vector<float> x = Random(6).uniform(4 * 64);
  std::vector<float> residual = Random(7).uniform(4 * 16);
  Doubles expected = reference_linear({&matrix, 1}, x);
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i] += residual[i];
  }
  auto graph = make_built("graph", true);
  EXPECT_LE(
      relative_rms(run_linear(*graph, {&matrix, 1}, x, {}, residual), expected),
      kExact
  );
}

class ChangingSource final : public WeightSource {
 public:
  explicit ChangingSource(size_t offset) : memory_(64 + 3), offset_(offset) {}
  std::span<const std::byte> bytes() const override {
    return std::as_bytes(std::span(memory_)).subspan(8 + offset_, 256);
  }
  std::string origin() const override {
    return "test";
  }
  void fill(float value) {
    auto* first = reinterpret_cast<std::byte*>(memory_.data()) + 8 + offset_;
    for (size_t i = 0; i < 64; ++i) {
      std::memcpy(first + 4 * i, &value, 4);
    }
  }

 private:
  std::vector<float> memory_;
  size_t offset_;
};

bool built_for_cpu_alone() {
  for (const backend::BackendFactory& built : backend::built_backends()) {
    if (built.name == "graph") {
      return built.devices().size() == 1;
    }
  }
  return false;
}

// The payload changes after it was prepared: only a view of it can tell. A
// build for a GPU copies.
TEST(GraphLinear, ReadsAlignedPayloadsInPlace) {
  for (size_t offset : {0, 1}) {
    auto source = std::make_shared<ChangingSource>(offset);
    source->fill(1.0F);
    RandomMatrix matrix = random_matrix("m", 1, 64, dense(DType::f32), 1);
    matrix.weight.codes.source = source;
    backend::WeightGroup group;
    group.parts.push_back(matrix.weight);
    auto graph = make_built("graph", true);
    auto weight = graph->prepare_linear(group);
    graph->materialize();
    source->fill(2.0F);
    std::vector<float> x(64, 1.0F);
    Session session(*graph);
    std::vector<float> out = session.alone(1, [&](Backend& b) {
      return b.linear(*weight, b.import_rows(x, 1, 64), {});
    });
    bool in_place = offset == 0 && built_for_cpu_alone();
    EXPECT_EQ(out[0], in_place ? 128.0F : 64.0F);
  }
}

TEST(GraphLinear, RefusesFormatsNamingTheMatrix) {
  RandomMatrix matrix = random_matrix("a.b.q_proj", 4, 64, affine(4, 64), 5);
  matrix.weight.format.bits = 7;
  auto graph = make_built("graph", true);
  EXPECT_FALSE(graph->supports(backend::Operation::linear, matrix.weight.format)
  );
  WeightGroup group;
  group.parts.push_back(matrix.weight);
  try {
    graph->prepare_linear(group);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_TRUE(error.message().starts_with("a.b.q_proj: ")) << error.what();
  }
}

TEST(GraphLinear, NamesTheMatrixWhoseInputDoesNotFit) {
  RandomMatrix matrix = random_matrix("a.b.q_proj", 4, 64, affine(4, 64), 5);
  auto graph = make_built("graph", true);
  std::vector<float> x = Random(6).uniform(32);
  WeightGroup group;
  group.parts.push_back(matrix.weight);
  auto weight = graph->prepare_linear(group);
  Session session(*graph);
  try {
    session.alone(1, [&](Backend& b) {
      return b.linear(*weight, b.import_rows(x, 1, 32), {});
    });
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(error.message().starts_with("a.b.q_proj: ")) << error.what();
  }
}

}  // namespace

}  // namespace mlxcel::test
