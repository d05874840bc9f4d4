#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mlxcel/core/json.h"

namespace mlxcel {

class Tokenizer;

/// What a checkpoint says about how to generate with it. Used where the user
/// gave nothing.
struct GenerationDefaults {
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<int64_t> top_k;
  /// Union of generation_config.json, config.json and the tokenizer's end
  /// token.
  std::vector<int32_t> stop_ids;
};

/// Reads generation_config.json (a missing one gives no defaults) and gathers
/// the stop ids. `tokenizer` may be null.
GenerationDefaults read_generation_defaults(
    const std::string& directory, const Json& config, const Tokenizer* tokenizer
);

}  // namespace mlxcel
