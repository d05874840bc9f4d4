#pragma once

#include <functional>
#include <string>

#include "mlxcel/core/device_facts.h"
#include "mlxcel/core/json.h"
#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// What becomes of bfloat16 tensors (weights-and-quantization.md 10).
enum class HalfPolicy : uint8_t {
  keep,
  keep_for_family,  // float16 has too little range for it
  to_f16,           // all of them, scales and biases of quantised matrices too
};

/// Looks variables of the environment up: null if unset.
using Environment = std::function<const char*(const char* name)>;

/// The first rule of the table that applies, for the device that runs.
/// `family_keeps`: the family declares that it needs bfloat16's range.
HalfPolicy half_policy(
    const DeviceFacts& device,
    const Json& config,
    bool family_keeps,
    const Environment& environment
);

/// Replaces bfloat16 tensors as the policy says; each is converted when it is
/// first read. One line of the log says how many and why, unless
/// MLXCEL_NO_PRECISION_WARNING is set. Returns how many were replaced.
int64_t apply_half_policy(
    HalfPolicy policy, WeightMap& weights, const Environment& environment
);

}  // namespace mlxcel
