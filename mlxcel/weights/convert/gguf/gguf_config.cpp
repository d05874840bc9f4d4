#include <nlohmann/json.hpp>

#include "mlxcel/weights/convert/gguf/gguf_model.h"

namespace mlxcel::convert {

namespace {

nlohmann::ordered_json rope_json(const RopeScaling& scaling) {
  nlohmann::ordered_json json;
  if (scaling.type != "llama3") {
    json["type"] = scaling.type;
  }
  json["rope_type"] = scaling.type;
  json["factor"] = scaling.factor;
  auto put = [&](const char* name, const auto& value) {
    if (value) {
      json[name] = *value;
    }
  };
  put("low_freq_factor", scaling.low_freq_factor);
  put("high_freq_factor", scaling.high_freq_factor);
  put("beta_fast", scaling.beta_fast);
  put("beta_slow", scaling.beta_slow);
  put("original_max_position_embeddings", scaling.original_context);
  return json;
}

}  // namespace

nlohmann::ordered_json model_config(const ModelParameters& p) {
  nlohmann::ordered_json json;
  json["architectures"] = {p.class_name};
  json["model_type"] = p.model_type;
  json["hidden_size"] = p.hidden_size;
  json["intermediate_size"] = p.intermediate_size;
  json["num_hidden_layers"] = p.layers;
  json["num_attention_heads"] = p.heads;
  json["num_key_value_heads"] = p.kv_heads;
  if (p.explicit_head_dim) {
    json["head_dim"] = p.head_dim;
  }
  json["hidden_act"] = p.activation;
  if (p.model_type == "gemma") {
    json["hidden_activation"] = p.activation;
  }
  json["rms_norm_eps"] = p.rms_norm_eps;
  json["rope_theta"] = p.rope_theta;
  if (p.rope_scaling) {
    json["rope_scaling"] = rope_json(*p.rope_scaling);
  }
  json["vocab_size"] = p.vocab_size;
  json["max_position_embeddings"] = p.context;
  json["tie_word_embeddings"] = p.tied;
  if (p.model_type == "llama" || p.attention_bias) {
    json["attention_bias"] = p.attention_bias;
  }
  if (p.model_type == "llama" || p.mlp_bias) {
    json["mlp_bias"] = p.mlp_bias;
  }
  return json;
}

}  // namespace mlxcel::convert
