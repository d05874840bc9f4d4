#include "mlxcel/backend/cpu/experts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace mlxcel::test {
namespace {

using backend::RouterSpec;
using backend::cpu::CpuRouting;
using backend::cpu::ExpertPlan;
using backend::cpu::route_row;

struct Choice {
  std::vector<int32_t> ids;
  std::vector<float> weights;
};

Choice choose(
    const std::vector<float>& scores, int64_t chosen, bool normalize
) {
  Choice choice;
  choice.ids.resize(static_cast<size_t>(chosen));
  choice.weights.resize(static_cast<size_t>(chosen));
  route_row(
      scores.data(),
      {std::ssize(scores), chosen, normalize},
      choice.ids.data(),
      choice.weights.data()
  );
  return choice;
}

TEST(CpuRoute, LargestFirstAndTheLowestNumberOfEqualOnes) {
  EXPECT_EQ(
      choose({1, 5, 3, 5, 4, 5}, 4, false).ids,
      (std::vector<int32_t>{1, 3, 5, 4})
  );
  EXPECT_EQ(
      choose({2, 2, 2, 2}, 3, false).ids, (std::vector<int32_t>{0, 1, 2})
  );
  EXPECT_EQ(choose({1, 2, 3}, 3, false).ids, (std::vector<int32_t>{2, 1, 0}));
}

TEST(CpuRoute, WeightsAreTheSoftmaxOfAllScores) {
  Choice choice = choose({0, std::log(2.0F), std::log(5.0F)}, 2, false);
  EXPECT_NEAR(choice.weights[0], 5.0 / 8, 1e-6);
  EXPECT_NEAR(choice.weights[1], 2.0 / 8, 1e-6);
  choice = choose({0, std::log(2.0F), std::log(5.0F)}, 2, true);
  EXPECT_NEAR(choice.weights[0], 5.0 / 7, 1e-6);
  EXPECT_NEAR(choice.weights[1], 2.0 / 7, 1e-6);
  // Far beyond what exp() can hold.
  choice = choose({1000, -1000, 1000}, 2, false);
  EXPECT_EQ(choice.weights, (std::vector<float>{0.5F, 0.5F}));
}

TEST(ExpertPlan, RowsByExpertInOrder) {
  CpuRouting routing;
  routing.rows = 4;
  routing.chosen = 2;
  routing.ids = {9, 9, 2, 0, 0, 4, 2, 4};  // row 0 is not asked for
  ExpertPlan plan;
  plan.sort(routing, 10, 1, 3);
  ASSERT_EQ(plan.parts().size(), 3u);
  EXPECT_EQ(plan.largest(), 2);
  EXPECT_EQ(plan.choices(), (std::vector<int64_t>{3, 4, 2, 6, 5, 7}));
  const int32_t experts[] = {0, 2, 4};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(plan.parts()[i].expert, experts[i]);
    EXPECT_EQ(plan.parts()[i].begin, static_cast<int64_t>(2 * i));
    EXPECT_EQ(plan.parts()[i].count, 2);
  }
  plan.sort(routing, 10, 0, 1);
  ASSERT_EQ(plan.parts().size(), 1u);
  EXPECT_EQ(plan.parts()[0].count, 2);
}

}  // namespace
}  // namespace mlxcel::test
