#pragma once

#include "mlxcel/core/json.h"
#include "mlxcel/nn/spec.h"

namespace mlxcel::models {

/// Qwen 2 and 2.5: biases on q, k, v. transformers: modeling_qwen2.py.
nn::DecoderSpec qwen2(const Json& config);

}  // namespace mlxcel::models
