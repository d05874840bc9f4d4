#include "mlxcel/models/text/llama.h"

#include <algorithm>
#include "mlxcel/models/text/fields.h"
#include "mlxcel/nn/rope.h"

namespace mlxcel::models {

namespace {

// Mistral slides in every layer unless `layer_types` says which; Llama only
// where `layer_types` says so.
std::vector<int64_t> windows(const Json& config, int64_t layers) {
  std::vector<int64_t> per_layer = read_layer_windows(config, layers);
  bool mistral = config.string_or("model_type", "") == "mistral";
  if (mistral && !config.has("layer_types") && config.has("sliding_window")) {
    int64_t window = config.at("sliding_window").as_int(1);
    std::fill(per_layer.begin(), per_layer.end(), window);
  }
  return per_layer;
}

}  // namespace

nn::DecoderSpec llama(const Json& config) {
  Dimensions dims = read_dimensions(config);
  require_even_head_dim(config, dims);
  nn::NormSpec norm;
  norm.epsilon = read_epsilon(config, "rms_norm_eps", 1e-6);

  nn::AttentionSpec attention = attention_of(dims);
  attention.rope = nn::rope_from_config(config, dims.head_dim, 10000.0);
  attention.qkv_bias = config.bool_or("attention_bias", false);
  attention.output_bias = attention.qkv_bias;

  nn::MlpSpec mlp;
  mlp.width = dims.ffn;
  mlp.bias = config.bool_or("mlp_bias", false);
  if (auto activation = config.find("hidden_act")) {
    mlp.activation = read_activation(*activation);
  }

  nn::DecoderSpec spec;
  spec.embedding = {dims.vocabulary, dims.hidden};
  for (int64_t window : windows(config, dims.layers)) {
    attention.window = window;
    spec.layers.push_back({attention, mlp, norm});
  }
  spec.final_norm = norm;
  spec.head.tied = config.bool_or("tie_word_embeddings", false);
  return spec;
}

}  // namespace mlxcel::models
