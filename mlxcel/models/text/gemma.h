#pragma once

#include "mlxcel/core/json.h"
#include "mlxcel/nn/spec.h"

namespace mlxcel::models {

/// Gemma 1: norm weights act as 1 + w, embeddings are scaled by sqrt(hidden),
/// the head is the embedding table. transformers: modeling_gemma.py.
nn::DecoderSpec gemma(const Json& config);

}  // namespace mlxcel::models
