#pragma once

#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// Text models that were cut out of, or wrapped for, a vision-language model
/// keep their tensors under `language_model.` or `model.language_model.`: gives
/// them the names of the text model alone. Does nothing if there are layers
/// under their own name. Gives the number of tensors renamed.
int64_t unwrap_text_names(WeightMap& weights);

}  // namespace mlxcel
