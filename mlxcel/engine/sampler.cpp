#include "mlxcel/engine/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "mlxcel/core/error.h"
#include "mlxcel/core/os.h"

namespace mlxcel {

namespace {

void require(bool ok, const char* name, double value, const char* range) {
  if (!ok) {
    fail(
        ErrorCode::usage,
        fmt::format("[sampling] {}: expected {}, got {}", name, range, value)
    );
  }
}

// SplitMix64 (Steele, Lea, Flood 2014): a counter-based stream, so that a
// token's randomness depends on the seed and its index alone.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// NaN compares with nothing: a row that has one gives no order to draw from.
float largest(std::span<const float> logits) {
  float best = -INFINITY;
  bool numbers = true;
  for (float logit : logits) {
    numbers &= !std::isnan(logit);
    best = std::max(best, logit);
  }
  if (!numbers || !std::isfinite(best)) {
    fail(
        ErrorCode::invalid_input,
        "[sampling] logits: not numbers; the model's weights are broken or its "
        "arithmetic overflows"
    );
  }
  return best;
}

}  // namespace

void SamplerParams::check() const {
  require(
      temperature >= 0 && temperature <= 100,
      "temperature",
      temperature,
      "a number from 0 to 100"
  );
  require(top_k >= 0, "top-k", static_cast<double>(top_k), "0 or more");
  require(
      top_p > 0 && top_p <= 1, "top-p", top_p, "a number above 0, at most 1"
  );
  require(min_p >= 0 && min_p <= 1, "min-p", min_p, "a number from 0 to 1");
  require(
      repetition_penalty > 0 && repetition_penalty <= 1000,
      "repetition-penalty",
      repetition_penalty,
      "a number above 0, at most 1000"
  );
}

Sampler::Sampler(const SamplerParams& params) : params_(params) {
  params.check();
  // A seed folds into 32 bits, as in the servers whose clients we serve.
  seed_ =
      params.seed < 0 ? os::random_seed() : static_cast<uint32_t>(params.seed);
}

bool Sampler::is_plain_argmax() const {
  bool greedy = params_.temperature == 0 || params_.top_k == 1;
  bool penalty = params_.repetition_penalty != 1 && params_.repeat_last_n != 0;
  return greedy && !penalty;
}

int32_t Sampler::sample(
    std::span<float> logits, std::span<const int32_t> history
) {
  penalize(logits, history);
  if (params_.temperature == 0 || params_.top_k == 1) {
    auto best = std::max_element(logits.begin(), logits.end());
    return static_cast<int32_t>(best - logits.begin());
  }
  filter(logits);
  return draw();
}

void Sampler::penalize(
    std::span<float> logits, std::span<const int32_t> history
) const {
  if (params_.repetition_penalty == 1 || params_.repeat_last_n == 0) {
    return;
  }
  size_t window = history.size();
  if (params_.repeat_last_n > 0) {
    window = std::min(window, static_cast<size_t>(params_.repeat_last_n));
  }
  auto penalty = static_cast<float>(params_.repetition_penalty);
  std::unordered_set<int32_t> seen;
  for (int32_t id : history.last(window)) {
    if (id < 0 || static_cast<size_t>(id) >= logits.size() ||
        !seen.insert(id).second) {
      continue;
    }
    float& logit = logits[static_cast<size_t>(id)];
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
}

// Leaves in candidates_ what top-k, top-p and min-p keep, in that order, all
// on the distribution before temperature. Ties with the k-th stay.
void Sampler::filter(std::span<const float> logits) {
  float best = largest(logits);
  // Below this, a token weighs less than a float can add to the sum.
  float floor = params_.min_p > 0
                    ? best + static_cast<float>(std::log(params_.min_p))
                    : -INFINITY;
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] >= floor || params_.top_p < 1) {
      candidates_.push_back({logits[i], static_cast<int32_t>(i)});
    }
  }
  auto larger = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  auto k = static_cast<size_t>(params_.top_k);
  if (k > 0 && k < candidates_.size()) {
    auto kth = candidates_.begin() + static_cast<ptrdiff_t>(k) - 1;
    std::nth_element(candidates_.begin(), kth, candidates_.end(), larger);
    float bound = kth->logit;
    std::erase_if(candidates_, [bound](const Candidate& c) {
      return c.logit < bound;
    });
  }
  if (params_.top_p < 1) {
    std::sort(candidates_.begin(), candidates_.end(), larger);
    double total = 0;
    for (const Candidate& c : candidates_) {
      total += std::exp(static_cast<double>(c.logit - best));
    }
    double before = 0;
    size_t kept = 0;
    while (kept < candidates_.size() && before <= params_.top_p * total) {
      before += std::exp(static_cast<double>(candidates_[kept].logit - best));
      ++kept;
    }
    candidates_.resize(kept);
  }
  std::erase_if(candidates_, [floor](const Candidate& c) {
    return c.logit < floor;
  });
}

int32_t Sampler::draw() {
  float best = -INFINITY;
  for (const Candidate& c : candidates_) {
    best = std::max(best, c.logit);
  }
  double total = 0;
  for (Candidate& c : candidates_) {
    double weight =
        std::exp(static_cast<double>(c.logit - best) / params_.temperature);
    c.logit = static_cast<float>(weight);
    total += static_cast<double>(c.logit);
  }
  double target = next_uniform() * total;
  for (const Candidate& c : candidates_) {
    target -= static_cast<double>(c.logit);
    if (target < 0) {
      return c.id;
    }
  }
  return candidates_.back().id;
}

double Sampler::next_uniform() {
  uint64_t bits = mix(mix(seed_) + draws_++);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace mlxcel
