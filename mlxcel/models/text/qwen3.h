#pragma once

#include "mlxcel/core/json.h"
#include "mlxcel/nn/spec.h"

namespace mlxcel::models {

/// Qwen 3: q and k are normalised per head, no biases unless the config asks
/// for them. transformers: modeling_qwen3.py.
nn::DecoderSpec qwen3(const Json& config);

}  // namespace mlxcel::models
