#include "mlxcel/models/text/qwen3_moe.h"

#include <fmt/format.h>

#include "mlxcel/models/text/fields.h"
#include "mlxcel/nn/rope.h"

namespace mlxcel::models {

namespace {

constexpr int64_t kMaxExperts = 1 << 16;

nn::AttentionSpec read_attention(
    const Json& config, const Dimensions& dims, const nn::NormSpec& norm
) {
  nn::AttentionSpec attention = attention_of(dims);
  attention.rope = nn::rope_from_config(config, dims.head_dim, 1000000.0);
  attention.qkv_bias = config.bool_or("attention_bias", false);
  attention.output_bias = attention.qkv_bias;
  attention.head_norm = norm;
  // All layers slide or none does.
  if (config.bool_or("use_sliding_window", false)) {
    attention.window = config.int_or("sliding_window", 4096, 1);
  }
  return attention;
}

// Either name (attribute_map of the official config).
Json experts_field(const Json& config) {
  return config.at(
      config.has("num_local_experts") && !config.has("num_experts")
          ? "num_local_experts"
          : "num_experts"
  );
}

nn::MoeSpec read_moe(const Json& config, backend::Activation activation) {
  nn::MoeSpec moe;
  moe.experts = experts_field(config).as_int(0, kMaxExperts);
  Json chosen = config.at("num_experts_per_tok");
  moe.chosen = chosen.as_int(1, kMaxExperts);
  if (moe.experts > 0 && moe.chosen > moe.experts) {
    chosen.reject(fmt::format("{} of {} experts", moe.chosen, moe.experts));
  }
  moe.width = config.at("moe_intermediate_size").as_int(1, kMaxWidth);
  moe.normalize = config.bool_or("norm_topk_prob", false);
  moe.activation = activation;
  return moe;
}

// Whether each layer has experts.
std::vector<bool> sparse_layers(
    const Json& config, int64_t layers, int64_t experts
) {
  int64_t step = config.int_or("decoder_sparse_step", 1, 1, kMaxLayers);
  std::vector<bool> sparse(static_cast<size_t>(layers));
  for (int64_t i = 0; i < layers; ++i) {
    sparse[static_cast<size_t>(i)] = experts > 0 && (i + 1) % step == 0;
  }
  if (auto dense = config.find("mlp_only_layers")) {
    for (const Json& layer : dense->elements()) {
      int64_t index = layer.as_int(0, kMaxLayers);
      if (index < layers) {
        sparse[static_cast<size_t>(index)] = false;
      }
    }
  }
  return sparse;
}

}  // namespace

nn::DecoderSpec qwen3_moe(const Json& config) {
  Dimensions dims = read_dimensions(config);
  require_even_head_dim(config, dims);
  nn::NormSpec norm;
  norm.epsilon = read_epsilon(config, "rms_norm_eps", 1e-6);
  nn::AttentionSpec attention = read_attention(config, dims, norm);
  nn::MlpSpec mlp;
  mlp.width = dims.ffn;
  if (auto activation = config.find("hidden_act")) {
    mlp.activation = read_activation(*activation);
  }
  nn::MoeSpec moe = read_moe(config, mlp.activation);

  nn::DecoderSpec spec;
  spec.embedding = {dims.vocabulary, dims.hidden};
  for (bool sparse : sparse_layers(config, dims.layers, moe.experts)) {
    nn::LayerSpec layer{attention, mlp, norm};
    if (sparse) {
      layer.ffn = moe;
    }
    spec.layers.push_back(std::move(layer));
  }
  spec.final_norm = norm;
  spec.head.tied = config.bool_or("tie_word_embeddings", false);
  return spec;
}

}  // namespace mlxcel::models
