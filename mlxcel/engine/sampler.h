#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mlxcel {

/// How the next token is drawn. Off values are the defaults: greedy.
/// runtime.md 2.
struct SamplerParams {
  double temperature = 0.0;         // 0: greedy
  int64_t top_k = 0;                // 0: off
  double top_p = 1.0;               // 1: off
  double min_p = 0.0;               // 0: off
  double repetition_penalty = 1.0;  // 1: off
  int64_t repeat_last_n = 64;       // tokens; negative: all, 0: off
  int64_t seed = -1;                // negative: from the system

  /// Throws Error(usage) naming the parameter and the value.
  void check() const;
};

/// Draws tokens for one sequence.
class Sampler {
 public:
  /// Throws what SamplerParams::check() throws.
  explicit Sampler(const SamplerParams& params);

  /// Whether the choice is the largest logit of the untouched row, which a
  /// backend finds itself.
  bool is_plain_argmax() const;

  /// The next token. `logits` [V] is changed; `history` are the tokens of the
  /// prompt and the reply so far.
  int32_t sample(std::span<float> logits, std::span<const int32_t> history);

 private:
  struct Candidate {
    float logit;
    int32_t id;
  };

  void penalize(std::span<float> logits, std::span<const int32_t> history)
      const;
  void filter(std::span<const float> logits);
  int32_t draw();
  double next_uniform();

  SamplerParams params_;
  std::vector<Candidate> candidates_;
  uint64_t seed_;
  uint64_t draws_ = 0;
};

}  // namespace mlxcel
