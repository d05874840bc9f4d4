#pragma once

#include <cstdint>

#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

class Json;

/// The last `num_kv_shared_layers` layers take keys and values of an earlier
/// one (Gemma 3n, Gemma 4): drops the `k_proj`, `v_proj` and `k_norm` tensors
/// that some checkpoints store for them, below `model.layers.` and
/// `language_model.model.layers.` alone, since towers have layers of the same
/// numbers. Gives the number of tensors dropped; a second call finds none.
/// Throws Error(invalid_input) naming the field: a number that is negative or
/// larger than `num_hidden_layers`, which must then be there.
int64_t drop_shared_kv(const Json& config, WeightMap& weights);

}  // namespace mlxcel
