#pragma once

#include "mlxcel/core/json.h"
#include "mlxcel/nn/spec.h"

namespace mlxcel::models {

/// Qwen3 with a mixture of experts in some layers (configuration_qwen3_moe.py).
nn::DecoderSpec qwen3_moe(const Json& config);

}  // namespace mlxcel::models
