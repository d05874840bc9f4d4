#pragma once

#include <string>

#include "mlxcel/weights/convert/checkpoint/plan.h"

namespace mlxcel::convert {

/// config.json of the output: that of the input with `quantization` (and
/// `quantization_config`, which is the same) of the plan in place of its own,
/// one entry for each module that differs from the rest, as mlx-lm writes it.
/// `dtype`, where it was asked for, becomes `torch_dtype`.
std::string output_config(
    const Json& config, const Plan& plan, const std::optional<DType>& dtype
);

}  // namespace mlxcel::convert
