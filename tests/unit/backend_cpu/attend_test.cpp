#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/backend_cpu/support/attention_case.h"
#include "tests/unit/backend_graph/support/random_weights.h"
#include "tests/unit/backend_graph/support/reference.h"

namespace mlxcel::test {

namespace {

using backend::AttentionSpec;
using backend::HeadNorm;
using backend::Role;
using backend::cpu::available_isas;
using backend::cpu::CpuOptions;
using backend::cpu::CpuVector;
using backend::cpu::Isa;
using Steps = std::vector<std::vector<Piece>>;

constexpr double kExact = 2e-6;
constexpr double kHalf = 1e-3;

struct Shape {
  const char* name;
  AttentionSpec spec;
};

HeadNorm head_norm(int64_t dim, uint64_t seed) {
  auto vector = std::make_shared<CpuVector>();
  vector->values = Random(seed).uniform(static_cast<size_t>(dim), 0.5F);
  for (float& value : vector->values) {
    value += 1.0F;
  }
  vector->size = dim;
  return {vector, 1e-5F};
}

AttentionSpec rotated(AttentionSpec spec, int64_t dims, bool interleaved) {
  spec.rope = rope_spec(dims, interleaved);
  return spec;
}

AttentionSpec windowed(AttentionSpec spec, int64_t window) {
  spec.window = window;
  return spec;
}

AttentionSpec normed(AttentionSpec spec) {
  spec.query_norm = head_norm(spec.key_dim, 3);
  spec.key_norm = head_norm(spec.key_dim, 4);
  return spec;
}

std::vector<Shape> shapes() {
  AttentionSpec small = attention_spec(9, 3, 64, 64);
  AttentionSpec odd = attention_spec(4, 2, 24, 20);
  return {
      {"nine_of_64", rotated(small, 64, false)},
      {"sixteen_of_128", rotated(attention_spec(16, 8, 128, 128), 128, false)},
      {"one_head", attention_spec(1, 1, 16, 16)},
      {"every_head_its_own", rotated(attention_spec(3, 3, 80, 80), 32, false)},
      {"one_for_thirteen", rotated(attention_spec(13, 1, 32, 32), 32, true)},
      {"odd_dims", rotated(odd, 10, true)},
      {"odd_dims_half_split", rotated(odd, 14, false)},
      {"one_value", attention_spec(2, 1, 1, 1)},
      {"wide_head", rotated(attention_spec(4, 1, 256, 256), 256, false)},
      {"values_wider", attention_spec(2, 2, 16, 40)},
      {"head_norms", normed(rotated(small, 64, false))},
      {"head_norms_odd", normed(rotated(odd, 24, false))},
      {"window_of_one", windowed(rotated(small, 64, false), 1)},
      {"window_of_70", windowed(rotated(odd, 24, false), 70)},
      {"window_of_a_span", windowed(rotated(small, 64, false), 128)},
  };
}

class CpuAttend : public testing::TestWithParam<Shape> {};
class CpuAttendBits : public testing::TestWithParam<Shape> {};

void expect_close(
    AttentionCase& shape,
    const std::vector<std::vector<float>>& outputs,
    double bound,
    const std::string& what
) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_LE(relative_rms(outputs[i], shape.expected(i)), bound)
        << what << ", sequence " << i;
  }
}

// Prompts of any length and pieces of several sequences side by side.
TEST_P(CpuAttend, PromptsMatchDouble) {
  std::vector<int64_t> lengths = {1, 33, 64, 150};
  AttentionCase shape(GetParam().spec, lengths);
  for (Isa isa : available_isas()) {
    for (int64_t count : {150, 64, 37}) {
      Steps steps = even_steps(lengths, count, Role::prompt);
      std::string what =
          std::string(isa_name(isa)) + " by " + std::to_string(count);
      expect_close(
          shape, shape.run(cpu_options(isa, true), steps), kExact, what
      );
      expect_close(
          shape, shape.run(cpu_options(isa, false), steps), kHalf, what
      );
    }
  }
}

TEST_P(CpuAttend, GeneratedRowsMatchDouble) {
  std::vector<int64_t> lengths = {2, 65, 270};
  AttentionCase shape(GetParam().spec, lengths);
  for (Isa isa : available_isas()) {
    Steps steps = even_steps(lengths, 1, Role::generated);
    std::string what(isa_name(isa));
    expect_close(shape, shape.run(cpu_options(isa, true), steps), kExact, what);
    expect_close(shape, shape.run(cpu_options(isa, false), steps), kHalf, what);
  }
}

// A prompt, then its reply, while others come and go.
Steps mixed_steps() {
  constexpr Role kPrompt = Role::prompt;
  constexpr Role kReply = Role::generated;
  Steps steps = {
      {{0, 64, kPrompt}},
      {{1, 1, kPrompt}, {0, 64, kPrompt}, {2, 3, kReply}},
      {{0, 22, kPrompt}, {2, 1, kReply}, {1, 63, kPrompt}},
  };
  for (int i = 0; i < 3; ++i) {
    steps.push_back({{0, 1, kReply}, {1, 1, kReply}, {2, 1, kReply}});
    steps.push_back({{2, 2, kReply}, {1, 13, kPrompt}, {0, 3, kReply}});
  }
  return steps;
}

const std::vector<int64_t> kMixedLengths = {162, 106, 13};

TEST_P(CpuAttend, MixedStepsMatchDouble) {
  AttentionCase shape(GetParam().spec, kMixedLengths);
  for (Isa isa : available_isas()) {
    expect_close(
        shape,
        shape.run(cpu_options(isa, true), mixed_steps(), 2),
        kExact,
        std::string(isa_name(isa))
    );
  }
}

TEST_P(CpuAttendBits, BitsDoNotDependOnThreads) {
  AttentionCase shape(GetParam().spec, kMixedLengths);
  for (Isa isa : available_isas()) {
    for (bool exact : {true, false}) {
      CpuOptions options = cpu_options(isa, exact);
      auto one = shape.run(options, mixed_steps(), 1);
      EXPECT_EQ(one, shape.run(options, mixed_steps(), 2)) << isa_name(isa);
      EXPECT_EQ(one, shape.run(options, mixed_steps(), 3)) << isa_name(isa);
    }
  }
}

// The pieces of one sequence of the mixed steps, each in a step of its own and
// cut into pieces of at most `most` tokens.
Steps alone(size_t sequence, int64_t most) {
  Steps steps;
  for (const std::vector<Piece>& pieces : mixed_steps()) {
    for (Piece piece : pieces) {
      if (piece.sequence == sequence) {
        piece.sequence = 0;
        for (int64_t left = piece.count; left > 0; left -= piece.count) {
          piece.count = std::min(most, left);
          steps.push_back({piece});
        }
      }
    }
  }
  return steps;
}

TEST_P(CpuAttendBits, BitsDoNotDependOnCompany) {
  AttentionCase together(GetParam().spec, kMixedLengths);
  for (Isa isa : available_isas()) {
    for (bool exact : {true, false}) {
      CpuOptions options = cpu_options(isa, exact);
      auto mixed = together.run(options, mixed_steps(), 2);
      // The first sequence has the same input in a case of its own.
      AttentionCase single(GetParam().spec, {kMixedLengths[0]});
      for (int64_t most : {1, 7, 64}) {
        EXPECT_EQ(mixed[0], single.run(options, alone(0, most), 2)[0])
            << isa_name(isa) << " by " << most;
      }
    }
  }
}

std::string shape_name(const testing::TestParamInfo<Shape>& param) {
  return param.param.name;
}

// The shapes that differ in how work is cut.
std::vector<Shape> some_shapes() {
  std::vector<Shape> some;
  for (const Shape& shape : shapes()) {
    for (const char* name :
         {"nine_of_64", "one_for_thirteen", "odd_dims", "window_of_70"}) {
      if (std::string(name) == shape.name) {
        some.push_back(shape);
      }
    }
  }
  return some;
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, CpuAttend, testing::ValuesIn(shapes()), shape_name
);
INSTANTIATE_TEST_SUITE_P(
    Shapes, CpuAttendBits, testing::ValuesIn(some_shapes()), shape_name
);

}  // namespace

}  // namespace mlxcel::test
