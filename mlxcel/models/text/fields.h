#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "mlxcel/backend/backend.h"
#include "mlxcel/core/json.h"
#include "mlxcel/nn/spec.h"

/// Fields that the configs of most text families state alike. Each reader
/// throws Error(invalid_input) naming the field and the file.
namespace mlxcel::models {

/// Bounds far above any published model: a file must not size our memory.
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxWidth = 1 << 20;
constexpr int64_t kMaxVocabulary = 1 << 24;

struct Dimensions {
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // absent: as many as heads
  int64_t head_dim = 0;  // absent: hidden / heads
  int64_t ffn = 0;
  int64_t vocabulary = 0;
};

Dimensions read_dimensions(const Json& config);

/// Heads as the dimensions have them, scores times 1 / sqrt(head_dim).
nn::AttentionSpec attention_of(const Dimensions& dims);

/// Rotation needs pairs: refuses an odd head size by name.
void require_even_head_dim(const Json& config, const Dimensions& dims);

float read_epsilon(const Json& config, std::string_view key, double fallback);

/// "silu", "gelu", "gelu_new", "gelu_pytorch_tanh", "relu" and their other
/// spellings; an unknown one is an Error(unsupported).
backend::Activation read_activation(const Json& field);

/// Per layer the window of `sliding_window` where `layer_types` says
/// "sliding_attention" and 0 where it says "full_attention"; without
/// `layer_types` all zero.
std::vector<int64_t> read_layer_windows(const Json& config, int64_t layers);

/// The Qwen rule: nothing slides unless `use_sliding_window`; then as
/// `layer_types` says or, without it, the layers from `max_window_layers` on.
std::vector<int64_t> read_upper_layer_windows(
    const Json& config, int64_t layers
);

}  // namespace mlxcel::models
