#include "mlxcel/models/text/fields.h"

#include <fmt/format.h>

#include <cmath>

#include "mlxcel/core/error.h"

namespace mlxcel::models {

Dimensions read_dimensions(const Json& config) {
  Dimensions dims;
  dims.hidden = config.at("hidden_size").as_int(1, kMaxWidth);
  dims.layers = config.at("num_hidden_layers").as_int(1, kMaxLayers);
  dims.heads = config.at("num_attention_heads").as_int(1, kMaxWidth);
  dims.kv_heads =
      config.int_or("num_key_value_heads", dims.heads, 1, kMaxWidth);
  dims.ffn = config.at("intermediate_size").as_int(1, kMaxWidth);
  dims.vocabulary = config.at("vocab_size").as_int(1, kMaxVocabulary);
  if (auto head_dim = config.find("head_dim")) {
    dims.head_dim = head_dim->as_int(1, kMaxWidth);
  } else {
    if (dims.hidden % dims.heads != 0) {
      config.at("num_attention_heads")
          .reject(fmt::format(
              "{} does not divide hidden_size {}, and there is no head_dim",
              dims.heads,
              dims.hidden
          ));
    }
    dims.head_dim = dims.hidden / dims.heads;
  }
  if (dims.heads % dims.kv_heads != 0) {
    config.at("num_key_value_heads")
        .reject(fmt::format(
            "{} does not divide num_attention_heads {}",
            dims.kv_heads,
            dims.heads
        ));
  }
  if (dims.heads * dims.head_dim > kMaxWidth) {
    config.at("num_attention_heads")
        .reject(fmt::format(
            "{} heads of {} are more than {} values per token",
            dims.heads,
            dims.head_dim,
            kMaxWidth
        ));
  }
  return dims;
}

nn::AttentionSpec attention_of(const Dimensions& dims) {
  nn::AttentionSpec attention;
  attention.heads = dims.heads;
  attention.kv_heads = dims.kv_heads;
  attention.head_dim = dims.head_dim;
  attention.scale = 1.0F / std::sqrt(static_cast<float>(dims.head_dim));
  return attention;
}

void require_even_head_dim(const Json& config, const Dimensions& dims) {
  if (dims.head_dim % 2 != 0) {
    config.at(config.has("head_dim") ? "head_dim" : "num_attention_heads")
        .reject(fmt::format(
            "rotary embedding needs an even head size, got {}", dims.head_dim
        ));
  }
}

float read_epsilon(const Json& config, std::string_view key, double fallback) {
  auto field = config.find(key);
  if (!field) {
    return static_cast<float>(fallback);
  }
  double value = field->as_double();
  if (!(value >= 0 && value < 1)) {
    field->reject(fmt::format("expected a number in [0, 1), got {}", value));
  }
  return static_cast<float>(value);
}

backend::Activation read_activation(const Json& field) {
  const std::string& name = field.as_string();
  if (name == "silu" || name == "swish") {
    return backend::Activation::silu;
  }
  if (name == "gelu") {
    return backend::Activation::gelu;
  }
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" ||
      name == "gelu_fast") {
    return backend::Activation::gelu_tanh;
  }
  if (name == "relu") {
    return backend::Activation::relu;
  }
  fail(
      ErrorCode::unsupported,
      fmt::format(
          "[config] {}: activation {} is not implemented (in {})",
          field.path(),
          quote(name),
          field.document_name()
      )
  );
}

std::vector<int64_t> read_layer_windows(const Json& config, int64_t layers) {
  std::vector<int64_t> windows(static_cast<size_t>(layers), 0);
  auto types = config.find("layer_types");
  if (!types) {
    return windows;
  }
  std::vector<Json> names = types->elements();
  if (static_cast<int64_t>(names.size()) != layers) {
    types->reject(
        fmt::format("{} entries for num_hidden_layers {}", names.size(), layers)
    );
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i].as_string();
    if (name == "sliding_attention") {
      windows[i] = config.at("sliding_window").as_int(1);
    } else if (name != "full_attention") {
      names[i].reject(fmt::format("unknown layer type {}", quote(name)));
    }
  }
  return windows;
}

std::vector<int64_t> read_upper_layer_windows(
    const Json& config, int64_t layers
) {
  if (!config.bool_or("use_sliding_window", false)) {
    return std::vector<int64_t>(static_cast<size_t>(layers), 0);
  }
  std::vector<int64_t> windows = read_layer_windows(config, layers);
  if (!config.has("layer_types")) {
    int64_t window = config.int_or("sliding_window", 4096, 1);
    int64_t first = config.int_or("max_window_layers", 28, 0);
    for (int64_t i = first; i < layers; ++i) {
      windows[static_cast<size_t>(i)] = window;
    }
  }
  return windows;
}

}  // namespace mlxcel::models
