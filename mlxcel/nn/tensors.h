#pragma once

#include <string>

#include "mlxcel/nn/spec.h"
#include "mlxcel/weights/tensor_table.h"

namespace mlxcel::nn {

/// Where a decoder's tensors stand in a checkpoint. The defaults are the names
/// that most published families use; a family with others sets them.
struct TensorNames {
  std::string embedding = "model.embed_tokens";
  std::string layer = "model.layers.{}";
  std::string query = "self_attn.q_proj";
  std::string key = "self_attn.k_proj";
  std::string value = "self_attn.v_proj";
  std::string output = "self_attn.o_proj";
  std::string query_norm = "self_attn.q_norm";
  std::string key_norm = "self_attn.k_norm";
  std::string mixer_norm = "input_layernorm";
  std::string gate = "mlp.gate_proj";
  std::string up = "mlp.up_proj";
  std::string down = "mlp.down_proj";
  std::string router = "mlp.gate";
  std::string expert_gate = "mlp.switch_mlp.gate_proj";
  std::string expert_up = "mlp.switch_mlp.up_proj";
  std::string expert_down = "mlp.switch_mlp.down_proj";
  std::string ffn_norm = "post_attention_layernorm";
  std::string final_norm = "model.norm";
  std::string head = "lm_head";
};

/// Path of a module of layer `index`: "model.layers.3.mlp.gate_proj".
std::string layer_path(
    const TensorNames& names, int64_t index, const std::string& module
);

/// Every tensor that the spec asks for, with its shape.
TensorTable decoder_tensors(
    const DecoderSpec& spec, const TensorNames& names = {}
);

}  // namespace mlxcel::nn
