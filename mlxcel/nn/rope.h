#pragma once

#include <cstdint>

#include "mlxcel/backend/backend.h"

namespace mlxcel {
class Json;
}

namespace mlxcel::nn {

/// The rotary embedding that a config declares: `rope_theta` (or
/// `default_theta`), `rope_traditional`, and `rope_scaling` or
/// `rope_parameters` with the kinds default, linear, llama3 and yarn under
/// `rope_type` or `type`. Formulas: transformers, modeling_rope_utils.py.
/// Throws Error(unsupported) naming the field for another kind.
backend::RopeSpec rope_from_config(
    const Json& config, int64_t dims, double default_theta
);

}  // namespace mlxcel::nn
