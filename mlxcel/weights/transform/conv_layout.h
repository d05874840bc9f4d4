#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// Checkpoints hold convolutions channel-first, as PyTorch does, or
/// channel-last, as MLX does; the shape alone decides which
/// (weights-and-quantization.md 19).

/// [O, H, W, I] rather than [O, I, H, W]: rank 4, d0 >= d1, d0 >= d2 and
/// d1 == d2. A [O, I, H, W] with O >= I = H has that shape too and is taken for
/// channel-last, as the rule has it; a kernel that is not square never has it.
/// So a loader decides once for what it reads, and not again for its result.
bool is_channel_last_conv2d(std::span<const int64_t> shape);
/// [C, K, 1] rather than [C, 1, K]: rank 3, d2 == 1 and d1 > 1.
bool is_channel_last_depthwise_conv1d(std::span<const int64_t> shape);

/// The weight channel-last: permuted when it is first read, or itself if it is
/// so already. Throws Error(invalid_input) naming it for another rank.
Weight channel_last_conv2d(const std::string& name, const Weight& weight);
Weight channel_last_depthwise_conv1d(
    const std::string& name, const Weight& weight
);

}  // namespace mlxcel
