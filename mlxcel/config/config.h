#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mlxcel/core/json.h"

namespace mlxcel {

/// Repairs known faults of published config files on the raw text, outside
/// string literals: a byte-order mark, trailing commas, and the non-JSON
/// numbers Infinity, -Infinity and NaN, which become 1e38, -1e38 and 0.0.
std::string sanitize_config_text(std::string_view text);

/// `config.json` of a model directory, sanitised and parsed.
/// Throws Error naming the path; not_found if there is none.
Json read_config(const std::string& model_directory);

/// Parses config text that comes from elsewhere; `name` is for messages.
Json parse_config(std::string_view text, std::string name);

/// The settings of the text model: `text_config` (or `llm_config`,
/// `language_config`, the same inside `thinker_config`) where it is an object,
/// else the config itself. The nested object inherits the quantisation that it
/// lacks; `tie_word_embeddings` at the top wins. Paths in messages start with
/// the key of the nested object.
Json text_config(const Json& config);

/// Ids under `eos_token_id`: a number, a list (non-integers dropped) or none.
std::vector<int64_t> eos_token_ids(const Json& config);

/// Tokens the model was trained to see: the first positive of
/// max_position_embeddings, n_positions, max_sequence_length in
/// `text_config`, then at the top; 0 if none is given. Throws Error above
/// 2^30, which no model has.
int64_t context_window(const Json& config);

}  // namespace mlxcel
