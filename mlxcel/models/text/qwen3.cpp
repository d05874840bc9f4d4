#include "mlxcel/models/text/qwen3.h"

#include "mlxcel/models/text/fields.h"
#include "mlxcel/nn/rope.h"

namespace mlxcel::models {

nn::DecoderSpec qwen3(const Json& config) {
  Dimensions dims = read_dimensions(config);
  if (!config.has("head_dim")) {
    dims.head_dim = 128;  // configuration_qwen3.py
  }
  require_even_head_dim(config, dims);
  nn::NormSpec norm;
  norm.epsilon = read_epsilon(config, "rms_norm_eps", 1e-6);

  nn::AttentionSpec attention = attention_of(dims);
  attention.rope = nn::rope_from_config(config, dims.head_dim, 1000000.0);
  attention.qkv_bias = config.bool_or("attention_bias", false);
  attention.output_bias = attention.qkv_bias;
  attention.head_norm = norm;

  nn::MlpSpec mlp;
  mlp.width = dims.ffn;
  if (auto activation = config.find("hidden_act")) {
    mlp.activation = read_activation(*activation);
  }

  nn::DecoderSpec spec;
  spec.embedding = {dims.vocabulary, dims.hidden};
  for (int64_t window : read_upper_layer_windows(config, dims.layers)) {
    attention.window = window;
    spec.layers.push_back({attention, mlp, norm});
  }
  spec.final_norm = norm;
  spec.head.tied = config.bool_or("tie_word_embeddings", false);
  return spec;
}

}  // namespace mlxcel::models
