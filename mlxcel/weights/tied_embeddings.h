#pragma once

#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

class Json;

/// Gives `lm_head` the handles of the embedding where the head is missing and
/// the config does not say `tie_word_embeddings: false`; once more with the
/// prefix `language_model.`. Idempotent. weights-and-quantization.md 8.
void restore_tied_embeddings(const Json& config, WeightMap& weights);

}  // namespace mlxcel
