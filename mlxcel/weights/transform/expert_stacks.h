#pragma once

#include <cstdint>
#include <optional>

#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

class Json;

/// The number of experts that the config declares (num_experts,
/// num_local_experts, n_routed_experts), empty if it does not.
std::optional<int64_t> declared_experts(const Json& config);

/// Brings the experts of a layer to one form, `<root>.switch_mlp.<proj>.
/// <plane>` [E, ...] (weights-and-quantization.md 16). Read are
/// - `<root>.experts.<i>.<proj>.<plane>`, stacked from 0 on without a copy,
/// - `<root>.experts.gate_up_proj` [E, 2 I, H], gate first, which is split, and
///   `<root>.experts.down_proj` [E, H, I], each also with `.weight`.
/// Gives the number of stacks made; a second call finds none.
/// Throws Error(invalid_input) naming the root: an expert that is missing
/// (with how many there are of how many), planes that differ from expert to
/// expert, an odd number of rows to split.
int64_t stack_experts(WeightMap& weights, std::optional<int64_t> declared);

}  // namespace mlxcel
