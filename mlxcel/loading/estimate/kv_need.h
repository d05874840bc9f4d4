#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mlxcel/core/json.h"
#include "mlxcel/loading/registry.h"

namespace mlxcel {

/// What one layer keeps for each token.
struct KvLayer {
  int64_t values = 0;  // keys and values, or the latent, of one token
  int64_t window = 0;  // tokens it keeps at most; 0: all
};

/// What a sequence keeps while it is continued, as the architecture defines
/// it: the layers that keep something per token, and in words what they are.
struct KvNeed {
  bool known = false;
  std::vector<KvLayer> layers;
  /// "30 layers of 3 heads of 64"; the reason if it isn't known.
  std::string detail;

  /// Values of all layers for one more token of a long context.
  int64_t values_per_token() const;
  /// Values for `context` tokens, in blocks of 32 (backend/state.h), sliding
  /// layers capped at their window.
  uint64_t values(int64_t context) const;
};

/// From the config alone, for every row of the registry whose layers are
/// described here; another one, or a config that lacks a field, is unknown and
/// says what is missing. Encoders keep nothing. Recurrent state does not grow
/// with the context and counts as nothing (cli.md 5). Never throws for what
/// the config says.
KvNeed kv_need(ModelType type, const Json& config);

}  // namespace mlxcel
