#include "mlxcel/engine/score.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "mlxcel/core/error.h"
#include "mlxcel/core/os.h"

namespace mlxcel {

namespace {

double log_sum_exp(std::span<const float> row) {
  float largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (float value : row) {
    sum += std::exp(static_cast<double>(value - largest));
  }
  return static_cast<double>(largest) + std::log(sum);
}

std::vector<TokenScore> best_tokens(
    std::span<const float> row, int64_t top, double normaliser
) {
  std::vector<int32_t> ids(row.size());
  std::iota(ids.begin(), ids.end(), 0);
  size_t count = std::min(ids.size(), static_cast<size_t>(top));
  std::partial_sort(
      ids.begin(),
      ids.begin() + static_cast<ptrdiff_t>(count),
      ids.end(),
      [&](int32_t a, int32_t b) {
        float x = row[static_cast<size_t>(a)];
        float y = row[static_cast<size_t>(b)];
        return x != y ? x > y : a < b;
      }
  );
  std::vector<TokenScore> best;
  for (size_t i = 0; i < count; ++i) {
    double logit = static_cast<double>(row[static_cast<size_t>(ids[i])]);
    best.push_back({ids[i], logit - normaliser});
  }
  return best;
}

// Sizes of the pieces that `total` tokens are fed in.
std::vector<int64_t> pieces(const ScoreParams& params, int64_t total) {
  std::vector<int64_t> sizes = params.chunks;
  if (sizes.empty()) {
    sizes.push_back(prefill_chunk());
  }
  for (int64_t size : sizes) {
    if (size < 1) {
      fail(ErrorCode::usage, "[score] chunks: expected positive sizes");
    }
  }
  std::vector<int64_t> out;
  int64_t done = 0;
  for (size_t i = 0; done < total; ++i) {
    int64_t size = sizes[std::min(i, sizes.size() - 1)];
    out.push_back(std::min(size, total - done));
    done += out.back();
  }
  return out;
}

class Collector {
 public:
  Collector(
      std::span<const int32_t> tokens,
      const ScoreParams& params,
      ScoreResult& result
  )
      : tokens_(tokens), params_(params), result_(result) {}

  void add(std::span<const float> row) {
    double normaliser = log_sum_exp(row);
    ++position_;
    if (position_ < tokens_.size()) {
      int32_t next = tokens_[position_];
      double logit = static_cast<double>(row[static_cast<size_t>(next)]);
      result_.scores.push_back({next, logit - normaliser});
    }
    if (params_.top > 0) {
      result_.alternatives.push_back(best_tokens(row, params_.top, normaliser));
    }
  }

 private:
  std::span<const int32_t> tokens_;
  const ScoreParams& params_;
  ScoreResult& result_;
  size_t position_ = 0;
};

}  // namespace

double ScoreResult::perplexity() const {
  double sum = 0;
  for (const TokenScore& score : scores) {
    sum += score.log_probability;
  }
  return scores.empty() ? 1
                        : std::exp(-sum / static_cast<double>(scores.size()));
}

ScoreResult score(
    Engine& engine, std::span<const int32_t> tokens, const ScoreParams& params
) {
  if (tokens.empty()) {
    fail(ErrorCode::usage, "[score] there are no tokens");
  }
  double start = os::now();
  ScoreResult result;
  result.vocabulary = engine.model().vocabulary();
  auto width = static_cast<size_t>(result.vocabulary);
  std::unique_ptr<Sequence> sequence = engine.open();
  Collector collector(tokens, params, result);
  std::vector<float> rows;
  std::span<const int32_t> rest = tokens;
  for (int64_t size : pieces(params, static_cast<int64_t>(tokens.size()))) {
    auto count = static_cast<size_t>(size);
    StepInput input{
        sequence.get(), rest.first(count), backend::Role::prompt, Logits::all};
    backend::Tensor logits = engine.step({&input, 1});
    rows.resize(count * width);
    engine.read(logits, rows);
    for (size_t i = 0; i < count; ++i) {
      collector.add(std::span(rows).subspan(i * width, width));
    }
    if (params.keep_logits) {
      result.logits.insert(result.logits.end(), rows.begin(), rows.end());
    }
    rest = rest.subspan(count);
  }
  result.seconds = os::now() - start;
  return result;
}

}  // namespace mlxcel
