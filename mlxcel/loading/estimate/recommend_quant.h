#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mlxcel/loading/estimate/memory_estimate.h"

namespace mlxcel {

/// A quantisation that the checkpoint could have, and what it would take.
struct QuantChoice {
  std::string format;   // "affine 4-bit group 64", "bf16"
  std::string convert;  // options of `mlxcel convert` that make it
  uint64_t weights = 0;
  uint64_t net = 0;  // weights, state and activations, no headroom
  bool fits = false;
};

/// bf16 and affine widths of 8 down to 2 bits, in that order, each estimated
/// as estimate_memory() does for a family that runs. Empty for other families
/// and where the backend does not tell what it allocates.
std::vector<QuantChoice> quant_choices(
    const CheckpointOutline& checkpoint,
    const MemoryRequest& request,
    const Budget& budget
);

/// The first that fits, which loses least; null if none does.
const QuantChoice* recommended(const std::vector<QuantChoice>& choices);

}  // namespace mlxcel
