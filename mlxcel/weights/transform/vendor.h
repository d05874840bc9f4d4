#pragma once

#include "mlxcel/core/device_facts.h"
#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

class Json;

/// Turns the planes of other exporters into MLX's, as the config declares them
/// (vendor_format.h), and dense tensors of types that no backend has into ones
/// that they have. Idempotent; nothing is computed before a plane is read.
/// Throws what vendor_format() and the transforms of each format throw.
void convert_vendor_formats(
    const Json& config, WeightMap& weights, const DeviceFacts& device
);

}  // namespace mlxcel
