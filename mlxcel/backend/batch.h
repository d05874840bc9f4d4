#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mlxcel::backend {

using SequenceId = uint64_t;

/// Whether tokens were given (a prompt, a text to score) or generated or
/// drafted. The kernel family follows the role, not the size of the step, so
/// that a token's bits don't depend on its company.
enum class Role : uint8_t { prompt, generated };

/// Consecutive tokens of one sequence within a step.
struct Segment {
  SequenceId sequence = 0;
  int64_t first = 0;     // row of the first token in the step
  int64_t count = 0;     // tokens
  int64_t position = 0;  // tokens that the sequence holds already
  Role role = Role::prompt;
  /// Pool blocks of the sequence, enough for position + count tokens.
  std::span<const int32_t> blocks;
};

/// One step: a flat list of tokens from any number of sequences. There is no
/// batch-1 and no padded form.
struct Batch {
  std::vector<int32_t> tokens;      // [T]
  std::vector<int32_t> positions;   // [T] rotary positions
  std::vector<Segment> segments;    // in row order, covering [0, T)
  std::vector<int32_t> logit_rows;  // [R] rows whose logits are wanted

  int64_t rows() const {
    return static_cast<int64_t>(tokens.size());
  }
};

}  // namespace mlxcel::backend
