#pragma once

#include "mlxcel/core/json.h"
#include "mlxcel/nn/spec.h"

namespace mlxcel::models {

/// Llama 1-3 and Mistral 1/2, which share a decoder. transformers:
/// modeling_llama.py, modeling_mistral.py.
nn::DecoderSpec llama(const Json& config);

}  // namespace mlxcel::models
