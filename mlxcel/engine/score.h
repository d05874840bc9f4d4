#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mlxcel/engine/engine.h"

namespace mlxcel {

struct TokenScore {
  int32_t token = 0;
  double log_probability = 0;  // natural logarithm, given what precedes
};

struct ScoreParams {
  /// Pieces in which the tokens are fed; empty: the engine's own chunks. The
  /// last size repeats.
  std::vector<int64_t> chunks;
  bool keep_logits = false;
  int64_t top = 0;  // alternatives per position
};

struct ScoreResult {
  /// Of tokens 1 .. T-1 given those before.
  std::vector<TokenScore> scores;
  /// The `top` most probable tokens at each of the T positions, best first.
  std::vector<std::vector<TokenScore>> alternatives;
  std::vector<float> logits;  // [T, V] if kept
  int64_t vocabulary = 0;
  double seconds = 0;

  /// exp(-mean of log probabilities); 1 for a single token.
  double perplexity() const;
};

/// Log-probabilities of given tokens in a fresh sequence. Throws Error(usage)
/// for no tokens, an id outside the vocabulary or more than the capacity.
ScoreResult score(
    Engine& engine, std::span<const int32_t> tokens, const ScoreParams& params
);

}  // namespace mlxcel
