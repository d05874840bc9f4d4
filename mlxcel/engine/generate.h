#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mlxcel/engine/engine.h"
#include "mlxcel/engine/sampler.h"

namespace mlxcel {

class Tokenizer;

struct GenerateParams {
  SamplerParams sampler;
  /// Tokens to generate at most; negative: until the context is full.
  int64_t max_tokens = -1;
  /// Tokens that the sequence may hold, prompt included.
  int64_t context = 4096;
  std::vector<std::string> stop_strings;
  std::vector<int32_t> stop_ids;
  bool ignore_stop_ids = false;  // for measurements
};

enum class FinishReason : uint8_t { stop, length, cancelled };

struct GenerateResult {
  std::string text;
  std::vector<int32_t> tokens;  // a final stop id included
  FinishReason reason = FinishReason::length;
  int64_t prompt_tokens = 0;  // of them, computed now
  double prompt_seconds = 0;
  double decode_seconds = 0;  // after the first token

  double prompt_speed() const;  // tokens/s
  double decode_speed() const;  // tokens/s
};

/// Continues `prompt` (all tokens of the conversation; those that `sequence`
/// already holds are not computed again) and hands out text as soon as it is
/// certain. `cancel`, if given, ends the reply at the next token.
/// Throws Error(invalid_input) for an empty prompt or one longer than the
/// context, Error(usage) for parameters out of range.
GenerateResult generate(
    Engine& engine,
    Sequence& sequence,
    const Tokenizer& tokenizer,
    std::span<const int32_t> prompt,
    const GenerateParams& params,
    const std::function<void(std::string_view)>& emit,
    const std::atomic<bool>* cancel = nullptr
);

}  // namespace mlxcel
