#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tests/harness/harness.h"
#include "tests/unit/backend_graph/support/random_weights.h"
#include "tests/unit/backend_graph/support/session.h"

namespace mlxcel::test {

enum class RopeKind { none, half_split, interleaved };

/// An attention layer, as a line of a list.
struct AttendData {
  const char* name;
  int64_t heads;
  int64_t kv_heads;
  int64_t key_dim;
  int64_t value_dim;
  RopeKind rope = RopeKind::none;
  int64_t rope_dims = 0;
  float amplitude = 1.0F;
  int64_t window = 0;
  bool head_norms = false;

  int64_t width() const;
};

backend::AttentionSpec attention_of(
    const AttendData& data, backend::Backend& on
);

/// Row t of q | k | v of a sequence: the same in whatever pieces it is fed.
/// [tokens, width]
std::vector<float> attend_rows(
    const AttendData& data, backend::SequenceId sequence, int64_t tokens
);

/// The outputs of all steps, one after another.
Rows run_attend(
    const AttendData& data,
    const std::vector<std::vector<Piece>>& steps,
    backend::Backend& on
);

}  // namespace mlxcel::test
