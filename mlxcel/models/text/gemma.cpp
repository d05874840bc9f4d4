#include "mlxcel/models/text/gemma.h"

#include <cmath>

#include "mlxcel/models/text/fields.h"
#include "mlxcel/nn/rope.h"

namespace mlxcel::models {

namespace {

// `hidden_act: "gelu"` of the first releases means the tanh form, says
// configuration_gemma.py; `hidden_activation` is taken at its word.
backend::Activation activation(const Json& config) {
  if (auto field = config.find("hidden_activation")) {
    return read_activation(*field);
  }
  auto field = config.find("hidden_act");
  if (!field || field->as_string() == "gelu") {
    return backend::Activation::gelu_tanh;
  }
  return read_activation(*field);
}

}  // namespace

nn::DecoderSpec gemma(const Json& config) {
  Dimensions dims = read_dimensions(config);
  require_even_head_dim(config, dims);
  nn::NormSpec norm;
  norm.epsilon = read_epsilon(config, "rms_norm_eps", 1e-6);
  norm.weight_offset = 1.0F;

  nn::AttentionSpec attention = attention_of(dims);
  attention.rope = nn::rope_from_config(config, dims.head_dim, 10000.0);
  attention.qkv_bias = config.bool_or("attention_bias", false);
  attention.output_bias = attention.qkv_bias;

  nn::MlpSpec mlp;
  mlp.width = dims.ffn;
  mlp.activation = activation(config);

  nn::DecoderSpec spec;
  spec.embedding = {dims.vocabulary, dims.hidden};
  spec.embedding.scale = std::sqrt(static_cast<float>(dims.hidden));
  spec.layers.assign(static_cast<size_t>(dims.layers), {attention, mlp, norm});
  spec.final_norm = norm;
  spec.head.tied = true;
  return spec;
}

}  // namespace mlxcel::models
