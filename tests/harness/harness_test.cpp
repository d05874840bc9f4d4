#include "tests/harness/harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "mlxcel/core/thread_pool.h"
#include "tests/harness/attend_data.h"
#include "tests/harness/cases.h"

namespace mlxcel::test {

namespace {

using backend::Backend;
using backend::Role;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Trial {
  Suite suite;
  Subject subject;
  bool exact = false;
};

void PrintTo(const Trial& trial, std::ostream* out) {
  *out << trial.suite.name << " on " << trial.subject.label();
}

// The exact definition itself is left out: it would meet itself.
std::vector<Trial> trials() {
  std::vector<Trial> all;
  for (const Suite& suite : suites()) {
    for (const Subject& subject : subjects()) {
      for (bool exact : {true, false}) {
        if (!exact || subject.backend != "graph" || subject.device != "cpu") {
          all.push_back({suite, subject, exact});
        }
      }
    }
  }
  return all;
}

class Harness : public testing::TestWithParam<Trial> {};

TEST_P(Harness, AgreesWithTheDefinition) {
  const Trial& trial = GetParam();
  compare(trial.suite.cases(), trial.subject, trial.exact);
}

std::string name_of(const testing::TestParamInfo<Trial>& param) {
  const Trial& trial = param.param;
  return trial.suite.name + "_" + trial.subject.label() +
         (trial.exact ? "_exact" : "_default");
}

INSTANTIATE_TEST_SUITE_P(Every, Harness, testing::ValuesIn(trials()), name_of);

class HarnessSubject : public testing::TestWithParam<Subject> {};

std::string label_of(const testing::TestParamInfo<Subject>& param) {
  return param.param.label();
}

INSTANTIATE_TEST_SUITE_P(
    Every, HarnessSubject, testing::ValuesIn(subjects()), label_of
);

std::vector<std::vector<Piece>> pieces_of(
    const std::vector<int64_t>& counts, Role role
) {
  std::vector<std::vector<Piece>> steps;
  for (int64_t count : counts) {
    steps.push_back({{1, count, role}});
  }
  return steps;
}

// A prompt gives the same whatever the pieces that it is fed in.
TEST_P(HarnessSubject, AttendsAlikeInOnePieceInChunksAndOneByOne) {
  AttendData data = {"6 on 2 of 32", 6, 2, 32, 32, RopeKind::half_split, 32};
  for (int64_t window : {0, 50}) {
    data.window = window;
    for (bool exact : {true, false}) {
      auto run = [&](const std::vector<int64_t>& counts, Role role) {
        auto on = GetParam().make(exact);
        return run_attend(data, pieces_of(counts, role), *on);
      };
      Rows whole = run({150}, Role::prompt);
      double bound = exact ? kHalfState.exact : kHalfState.quick;
      EXPECT_LE(row_error(run({1, 70, 79}, Role::prompt), whole), bound);
      std::vector<int64_t> ones(150, 1);
      EXPECT_LE(row_error(run(ones, Role::prompt), whole), bound);
      EXPECT_LE(row_error(run(ones, Role::generated), whole), bound);
      if (GetParam().stable) {
        EXPECT_EQ(run({64, 64, 22}, Role::prompt).values, whole.values);
        EXPECT_EQ(run({128, 22}, Role::prompt).values, whole.values);
        EXPECT_EQ(
            run({40, 40, 40, 30}, Role::generated).values,
            run(ones, Role::generated).values
        );
      }
    }
  }
}

// The rows that sequence 1 gets, alone or among others.
std::vector<float> linear_rows(
    Backend& on, const RandomMatrix& matrix, std::vector<Piece> pieces
) {
  backend::WeightGroup group;
  group.parts.push_back(matrix.weight);
  auto weight = on.prepare_linear(group);
  int64_t cols = matrix.weight.cols;
  std::vector<float> own = Random(81).uniform(40 * cols);
  std::vector<float> others = Random(82).uniform(200 * cols);
  std::vector<float> x;
  size_t first = 0;
  size_t count = 0;
  for (const Piece& piece : pieces) {
    const std::vector<float>& from = piece.sequence == 1 ? own : others;
    if (piece.sequence == 1) {
      first = x.size() / cols;
      count = piece.count;
    }
    x.insert(x.end(), from.begin(), from.begin() + piece.count * cols);
  }
  auto rows = static_cast<int64_t>(x.size()) / cols;
  Session session(on);
  std::vector<float> y = session.step(pieces, [&](Backend& b) {
    return b.linear(*weight, b.import_rows(x, rows, cols), {});
  });
  size_t outputs = matrix.weight.rows;
  auto begin = y.begin() + static_cast<int64_t>(first * outputs);
  return {begin, begin + static_cast<int64_t>(count * outputs)};
}

std::vector<Subject> stable_subjects() {
  std::vector<Subject> all = subjects();
  std::erase_if(all, [](const Subject& subject) { return !subject.stable; });
  return all;
}

class HarnessStableSubject : public testing::TestWithParam<Subject> {};

INSTANTIATE_TEST_SUITE_P(
    Every, HarnessStableSubject, testing::ValuesIn(stable_subjects()), label_of
);

// A row's bits depend on its role alone: not on its neighbours, not on the
// number of threads.
TEST_P(HarnessStableSubject, GivesARowTheSameBitsInAnyCompany) {
  int threads = ThreadPool::instance().size();
  for (const WeightFormat& format :
       {affine(4, 64),
        affine(8, 32),
        affine(6, 64),
        affine(5, 32),
        affine(3, 128),
        affine(2, 64),
        affine(1, 64),
        WeightFormat{QuantMode::mxfp4, DType::u8, 4, 32},
        WeightFormat{QuantMode::mxfp8, DType::u8, 8, 32},
        WeightFormat{QuantMode::nvfp4, DType::u8, 4, 16},
        dense(DType::bf16),
        dense(DType::f16),
        dense(DType::f32)}) {
    RandomMatrix matrix = random_matrix("m", 71, 384, format, 6);
    for (bool exact : {true, false}) {
      SCOPED_TRACE(format.describe() + (exact ? " exact" : " default"));
      auto on = GetParam().make(exact);
      for (Role role : {Role::prompt, Role::generated}) {
        ThreadPool::instance().resize(1);
        auto alone = linear_rows(*on, matrix, {{1, 1, role}});
        auto among = linear_rows(
            *on,
            matrix,
            {{2, 13, Role::prompt},
             {3, 1, Role::generated},
             {1, 1, role},
             {4, 70, Role::prompt}}
        );
        EXPECT_EQ(alone, among);
        auto more = linear_rows(*on, matrix, {{1, 37, role}, {2, 1, role}});
        more.resize(alone.size());
        EXPECT_EQ(alone, more);
        ThreadPool::instance().resize(3);
        EXPECT_EQ(alone, linear_rows(*on, matrix, {{1, 1, role}}));
        ThreadPool::instance().resize(threads);
      }
    }
  }
}

TEST(HarnessItself, SeesWhatIsWrong) {
  Rows right{2, {1, 2, 3, 4}};
  EXPECT_EQ(row_error(right, right), 0.0);
  EXPECT_NEAR(row_error({2, {1, 2, 3, 4.1F}}, right), 0.0258, 1e-4);
  EXPECT_GT(row_error({2, {2, 1, 3, 4}}, right), 0.3);
  EXPECT_GT(row_error({2, {3, 4, 1, 2}}, right), 0.5);
  EXPECT_TRUE(std::isinf(row_error({2, {1, 2, 3, kNan}}, right)));
  EXPECT_TRUE(std::isinf(row_error({2, {1, 2}}, right)));
  EXPECT_TRUE(std::isinf(row_error({4, {1, 2, 3, 4}}, right)));
}

TEST(HarnessItself, MeetsEveryBackend) {
  std::vector<Subject> all = subjects();
  auto has = [&](const std::string& label) {
    return std::any_of(all.begin(), all.end(), [&](const Subject& subject) {
      return subject.label() == label;
    });
  };
  EXPECT_TRUE(has("graph_cpu"));
  EXPECT_TRUE(has("cpu_cpu_generic"));
  for (const Suite& suite : suites()) {
    EXPECT_FALSE(suite.cases().empty()) << suite.name;
  }
}

}  // namespace

}  // namespace mlxcel::test
