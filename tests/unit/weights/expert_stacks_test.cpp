#include "mlxcel/weights/transform/expert_stacks.h"

#include "mlxcel/config/config.h"
#include "mlxcel/weights/expert_stack.h"
#include "mlxcel/weights/weight_slice.h"
#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

constexpr const char* kRoot = "model.layers.3.mlp";

std::string name(const std::string& rest) {
  return kRoot + ("." + rest);
}

Weight values(std::vector<int64_t> shape, float first) {
  int64_t count = 1;
  for (int64_t n : shape) {
    count *= n;
  }
  std::vector<float> all;
  for (int64_t i = 0; i < count; ++i) {
    all.push_back(first + static_cast<float>(i));
  }
  return make_weight<float>(DType::f32, std::move(shape), all);
}

WeightMap single_experts(int count) {
  WeightMap weights;
  weights.origin = "DIR";
  for (int e = 0; e < count; ++e) {
    std::string path = "experts." + std::to_string(e) + ".";
    auto first = static_cast<float>(100 * e);
    weights.insert(name(path + "gate_proj.weight"), values({3, 32}, first));
    weights.insert(name(path + "up_proj.weight"), values({3, 32}, first + 1));
    weights.insert(name(path + "down_proj.weight"), values({32, 3}, first + 2));
  }
  weights.insert(name("gate.weight"), values({2, 32}, 0));
  return weights;
}

TEST(ExpertStacks, SingleExpertsAreStackedInPlaceAndOnce) {
  // Twelve, so that 10 comes before 2 by name.
  WeightMap weights = single_experts(12);
  const auto source = weights.at(name("experts.10.up_proj.weight")).source;
  EXPECT_EQ(stack_experts(weights, 12), 3);
  ASSERT_EQ(weights.size(), 4u);
  const Weight& up = weights.at(name("switch_mlp.up_proj.weight"));
  EXPECT_EQ(up.shape, (std::vector<int64_t>{12, 3, 32}));
  EXPECT_EQ(element_of(up, 10).source, source);
  EXPECT_EQ(to_float(element_of(up, 2))[0], 201.0F);
  EXPECT_EQ(stack_experts(weights, 12), 0);
  EXPECT_EQ(weights.size(), 4u);
}

TEST(ExpertStacks, AGapNamesRootFoundAndExpected) {
  WeightMap weights = single_experts(4);
  weights.erase(name("experts.1.up_proj.weight"));
  for (std::optional<int64_t> declared :
       {std::optional<int64_t>(), std::optional<int64_t>(4)}) {
    WeightMap copy = weights;
    expect_error(
        [&] { stack_experts(copy, declared); },
        ErrorCode::invalid_input,
        {name("experts"), "up_proj.weight", "3 of 4", "is 1", "DIR"}
    );
  }
  WeightMap fewer = single_experts(4);
  expect_error(
      [&] { stack_experts(fewer, 6); },
      ErrorCode::invalid_input,
      {name("experts"), "4 of 6", "is 4"}
  );
}

TEST(ExpertStacks, ExpertsThatDifferAreRefused) {
  WeightMap weights = single_experts(3);
  weights.insert(name("experts.2.gate_proj.weight"), values({4, 32}, 0));
  expect_error(
      [&] { stack_experts(weights, 3); },
      ErrorCode::invalid_input,
      {name("experts"),
       "gate_proj.weight",
       "[3, 32] F32",
       "[4, 32] F32",
       "expert 2"}
  );
}

TEST(ExpertStacks, FusedGateAndUpAreSplitGateFirst) {
  for (const char* plane : {"", ".weight"}) {
    WeightMap weights;
    weights.insert(
        name(std::string("experts.gate_up_proj") + plane), values({2, 6, 4}, 0)
    );
    weights.insert(
        name(std::string("experts.down_proj") + plane), values({2, 4, 3}, 500)
    );
    EXPECT_EQ(stack_experts(weights, 2), 3);
    const Weight& gate = weights.at(name("switch_mlp.gate_proj.weight"));
    const Weight& up = weights.at(name("switch_mlp.up_proj.weight"));
    EXPECT_EQ(gate.shape, (std::vector<int64_t>{2, 3, 4}));
    EXPECT_EQ(to_float(element_of(gate, 1))[0], 24.0F);
    EXPECT_EQ(to_float(element_of(up, 0))[0], 12.0F);
    EXPECT_EQ(to_float(up).back(), 47.0F);
    EXPECT_EQ(
        to_float(weights.at(name("switch_mlp.down_proj.weight")))[0], 500.0F
    );
    EXPECT_EQ(stack_experts(weights, 2), 0);
  }
  WeightMap odd;
  odd.insert(name("experts.gate_up_proj"), values({2, 5, 4}, 0));
  expect_error(
      [&] { stack_experts(odd, 2); },
      ErrorCode::invalid_input,
      {name("experts.gate_up_proj"), "[2, 5, 4]", "halves"}
  );
}

TEST(ExpertStacks, OtherNamesStay) {
  WeightMap weights;
  for (const char* other :
       {"a.experts.weight",
        "a.experts.x1.up.weight",
        "a.experts.01.up.weight",
        "a.experts.-1.up.weight",
        "a.experts.1",
        "a.experts.gate_up_project",
        "a.shared_experts.0.up.weight",
        "experts.0.up.weight"}) {
    weights.insert(other, values({1}, 0));
  }
  EXPECT_EQ(stack_experts(weights, std::nullopt), 0);
  EXPECT_EQ(weights.size(), 8u);
}

TEST(ExpertStacks, TheConfigTellsTheNumber) {
  auto number = [](const char* text) {
    return declared_experts(parse_config(text, "config.json"));
  };
  EXPECT_EQ(number(R"({"num_experts": 8})"), 8);
  EXPECT_EQ(number(R"({"num_local_experts": 4})"), 4);
  EXPECT_EQ(number(R"({"text_config": {"n_routed_experts": 64}})"), 64);
  EXPECT_EQ(number(R"({"model_type": "llama"})"), std::nullopt);
}

Weight words(std::vector<int64_t> shape) {
  int64_t count = 1;
  for (int64_t n : shape) {
    count *= n;
  }
  return make_weight<uint32_t>(
      DType::u32, shape, std::vector<uint32_t>(static_cast<size_t>(count), 7)
  );
}

// Planes of 4 experts, 6 rows of 64, `bits` wide in groups of 32.
WeightMap planes(int bits) {
  WeightMap weights;
  weights.origin = "DIR";
  weights.insert("p.weight", words({4, 6, 2 * bits}));
  weights.insert("p.scales", values({4, 6, 2}, 1));
  weights.insert("p.biases", values({4, 6, 2}, 2));
  return weights;
}

ExpertStack bind(const WeightMap& weights, int64_t experts = 4) {
  return bind_experts(weights, "p", experts, 6, 64, {});
}

TEST(BindExperts, FormatAndViewsOfEachExpert) {
  for (int bits : {2, 3, 4, 5, 6, 8}) {
    ExpertStack stack = bind(planes(bits));
    EXPECT_EQ(stack.format.bits, bits);
    EXPECT_EQ(stack.format.group, 32);
    LinearWeight third = stack.expert(2);
    EXPECT_EQ(third.path, "p.2");
    EXPECT_EQ(third.codes.shape, (std::vector<int64_t>{6, 2 * bits}));
    EXPECT_EQ(to_float(*third.scales)[0], 25.0F);
    EXPECT_EQ(to_float(*third.biases)[0], 26.0F);
    EXPECT_EQ(
        third.codes.bytes().data(),
        stack.codes.bytes().data() + 2 * 6 * 2 * bits * 4
    );
  }
}

TEST(BindExperts, WhatIsWrongIsNamed) {
  expect_error(
      [] { bind(planes(4), 5); },
      ErrorCode::invalid_input,
      {"p.weight", "[5, 6, 64]", "[4, 6, 8]"}
  );
  expect_error([] { bind(planes(1)); }, ErrorCode::unsupported, {"p", "1-bit"});
  expect_error([] { bind(planes(7)); }, ErrorCode::invalid_input, {"p"});
  WeightMap other = planes(4);
  other.insert("p.biases", values({4, 6, 1}, 0));
  expect_error([&] { bind(other); }, ErrorCode::invalid_input, {"p.biases"});
  other = planes(4);
  other.insert("p.scales", values({3, 6, 2}, 0));
  expect_error(
      [&] { bind(other); },
      ErrorCode::invalid_input,
      {"p.scales", "4 experts", "[3, 6, 2]"}
  );
  other = planes(4);
  other.erase("p.biases");
  EXPECT_ANY_THROW(bind(other));
  other = planes(4);
  other.insert("p.weight", words({4, 6, 0}));
  expect_error([&] { bind(other); }, ErrorCode::invalid_input, {"p.weight"});
  other.insert("p.weight", words({24, 8}));
  expect_error(
      [&] { bind(other); }, ErrorCode::invalid_input, {"p.weight", "[24, 8]"}
  );
  other = planes(4);
  other.insert("p.global_scale", values({4}, 1));
  expect_error(
      [&] { bind(other); },
      ErrorCode::invalid_input,
      {"p.global_scale", "nvfp4"}
  );
  other = {};
  expect_error([&] { bind(other); }, ErrorCode::not_found, {"p.weight"});
}

}  // namespace
}  // namespace mlxcel::test
