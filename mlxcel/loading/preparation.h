#pragma once

#include <functional>
#include <vector>

#include "mlxcel/core/device_facts.h"
#include "mlxcel/core/json.h"
#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// An edit of a checkpoint's tensors, by the names they have once they are
/// those of the text model.
using WeightEdit = std::function<void(const Json& config, WeightMap& weights)>;

struct Preparation {
  DeviceFacts device;
  bool keeps_bf16 = false;  // the family's (registry)
  std::vector<WeightEdit> edits;
};

/// What happens to the tensors of a text model between reading and binding,
/// in this order (weights-and-quantization.md 5):
/// 1. planes of other exporters become MLX's, types that no backend has become
///    ones that they have;
/// 2. the names of a wrapping vision-language model are taken off;
/// 3. keys and values that a layer takes from another one are dropped;
/// 4. the experts of a layer become stacks;
/// 5. a missing head is the embedding;
/// 6. the edits;
/// 7. bfloat16 becomes float16 where that suits the device.
/// Each step decides from config, names and shapes, reads no value and does
/// nothing the second time; so all of it also runs on weights without bytes.
/// Throws what the steps throw (weights/transform/).
void prepare_text_weights(
    const Json& config, const Preparation& how, WeightMap& weights
);

}  // namespace mlxcel
