#include "mlxcel/engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "tests/unit/support/expect_error.h"

namespace mlxcel {
namespace {

std::map<int32_t, int> draw(
    const SamplerParams& params, std::vector<float> logits, int times
) {
  Sampler sampler(params);
  std::map<int32_t, int> counts;
  for (int i = 0; i < times; ++i) {
    std::vector<float> row = logits;
    ++counts[sampler.sample(row, {})];
  }
  return counts;
}

TEST(Sampler, GreedyTakesTheLowestOfTheLargest) {
  std::vector<float> row = {1, 3, 3, 2};
  EXPECT_EQ(Sampler({}).sample(row, {}), 1);
  EXPECT_TRUE(Sampler({}).is_plain_argmax());
}

TEST(Sampler, FollowsTheDistribution) {
  SamplerParams params{.temperature = 1.0, .seed = 1};
  std::vector<float> logits = {std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  auto counts = draw(params, logits, 20000);
  EXPECT_NEAR(counts[0], 10000, 400);
  EXPECT_NEAR(counts[1], 6000, 400);
  EXPECT_NEAR(counts[2], 4000, 400);
}

TEST(Sampler, TemperatureSharpens) {
  SamplerParams params{.temperature = 0.5, .seed = 1};
  auto counts = draw(params, {std::log(0.6F), std::log(0.4F)}, 20000);
  EXPECT_NEAR(counts[0], 20000 * 0.36 / 0.52, 400);
}

TEST(Sampler, TopKKeepsTies) {
  SamplerParams params{.temperature = 1.0, .top_k = 2, .seed = 1};
  auto counts = draw(params, {3, 2, 2, 1}, 2000);
  EXPECT_EQ(counts.size(), 3u);
  EXPECT_FALSE(counts.contains(3));
}

TEST(Sampler, TopPKeepsTokensWhoseMassBeforeIsWithin) {
  std::vector<float> logits = {std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  SamplerParams params{.temperature = 1.0, .top_p = 0.4, .seed = 1};
  EXPECT_EQ(draw(params, logits, 1000).size(), 1u);
  params.top_p = 0.7;
  EXPECT_EQ(draw(params, logits, 1000).size(), 2u);
}

TEST(Sampler, MinPCutsRelativeToTheBest) {
  SamplerParams params{.temperature = 5.0, .min_p = 0.5, .seed = 1};
  auto counts =
      draw(params, {std::log(0.5F), std::log(0.3F), std::log(0.2F)}, 2000);
  EXPECT_EQ(counts.size(), 2u);
}

TEST(Sampler, RepetitionPenaltyCountsATokenOnce) {
  SamplerParams params{.repetition_penalty = 2.0, .repeat_last_n = 3};
  std::vector<int32_t> history = {2, 0, 0, 1};
  std::vector<float> row = {4, -1, 3.9F};
  EXPECT_EQ(Sampler(params).sample(row, history), 2);
  EXPECT_EQ(row, (std::vector<float>{2, -2, 3.9F}));
}

TEST(Sampler, SameSeedSameTokens) {
  SamplerParams params{.temperature = 1.0, .seed = 42};
  std::vector<float> logits(100);
  for (int run = 0; run < 2; ++run) {
    Sampler a(params);
    Sampler b(params);
    for (int i = 0; i < 50; ++i) {
      std::vector<float> x = logits;
      std::vector<float> y = logits;
      ASSERT_EQ(a.sample(x, {}), b.sample(y, {}));
    }
  }
}

TEST(Sampler, RefusesValuesOutOfRange) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_ERROR(Sampler({.temperature = nan}), "temperature");
  EXPECT_ERROR(Sampler({.temperature = -1}), "temperature");
  EXPECT_ERROR(Sampler({.top_k = -1}), "top-k");
  EXPECT_ERROR(Sampler({.top_p = 0}), "top-p");
  EXPECT_ERROR(Sampler({.min_p = 1.5}), "min-p");
  EXPECT_ERROR(Sampler({.repetition_penalty = 0}), "repetition-penalty");
}

}  // namespace
}  // namespace mlxcel
