#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "mlxcel/core/json.h"

namespace mlxcel {

/// Fields that published configs write in more than one way. Each function
/// throws Error(invalid_input) naming the field where none of them is met.

/// A rank that may say "auto" (`time_step_rank`, `mamba_dt_rank`): 0 for any
/// string that is no number and where it is absent, to be derived then.
int64_t rank_or_auto(const Json& config, std::string_view key);

/// `time_step_limit`: a pair or a longer list; a second item that is no
/// number, and the 1e38 that Infinity became, is +inf. (0, +inf) where it is
/// absent or shorter, whatever `time_step_min` and `time_step_max` say (they
/// are for training).
std::pair<double, double> time_step_limit(const Json& config);

/// The mixers of Nemotron-H, one code per layer: M Mamba, * attention, E
/// experts, - MLP. `hybrid_override_pattern` (a string, with commas or
/// without, or a list), else `layers_block_type` or `layer_types` in words.
/// Its length is the number of layers, whatever `num_hidden_layers` says.
/// Empty if there is none of them.
std::vector<char> layer_pattern(const Json& config);

/// Whether the weights are declared quantised anywhere: `quantization` or
/// `quantization_config`, at the top or in the text config.
bool declares_quantization(const Json& config);

/// Side of a detector's input in pixels: `size` (height, else shortest_edge,
/// else width) before `image_size`; 0 if there is neither.
int64_t detector_image_size(const Json& config);

/// `id2label` ordered by id as numbers ("10" after "9").
std::vector<std::pair<int64_t, std::string>> labels(const Json& config);

/// A drafter's config with `mask_token_id`, `target_layer_ids` and
/// `num_target_layers` of `dflash_config` in the place of those at the top.
Json lift_drafter_fields(const Json& config);

}  // namespace mlxcel
