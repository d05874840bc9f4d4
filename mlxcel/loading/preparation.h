#pragma once

#include "mlxcel/core/device_facts.h"
#include "mlxcel/core/json.h"
#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// What happens to the tensors of a text model between reading and binding,
/// in this order: planes of other exporters become MLX's, types that no
/// backend has become ones that they have, the names of a wrapping
/// vision-language model are taken off, and a missing head is the embedding.
/// Each step decides from config, names and shapes, reads no value and does
/// nothing the second time; so it also runs on weights without bytes.
/// Throws what the steps throw (weights/transform/vendor.h).
void prepare_text_weights(
    const Json& config, const DeviceFacts& device, WeightMap& weights
);

}  // namespace mlxcel
