#pragma once

#include "mlxcel/loading/model_type.h"

namespace mlxcel::facts {

// detection-and-routing.md 1.6, in its order.

inline constexpr ModelType kNativeVideo[] = {
    ModelType::gemma4_vlm,
    ModelType::gemma4_unified,
    ModelType::inkling_vlm,
    ModelType::kimi_vl,
    ModelType::kimi_k2_5,
    ModelType::qwen2_vl,
    ModelType::qwen2_5_vl,
    ModelType::qwen3_vl,
    ModelType::qwen3_vl_moe,
    ModelType::qwen3_5_vlm,
    ModelType::qwen3_5_moe_vlm,
};

inline constexpr ModelType kTensorParallel[] = {
    ModelType::llama,
    ModelType::qwen2,
    ModelType::qwen3,
    ModelType::qwen3_5,
    ModelType::qwen3_5_vlm,
    ModelType::gemma3,
    ModelType::gemma4,
    ModelType::gemma4_vlm,
    ModelType::ernie4_5,
    ModelType::hunyuan_v1_dense,
};

inline constexpr ModelType kPipelineParallel[] = {
    ModelType::llama,         ModelType::iquest_coder,
    ModelType::llama4,        ModelType::llama4_vlm,
    ModelType::mixtral,       ModelType::deepseek_v3,
    ModelType::gpt_oss,       ModelType::gemma3,
    ModelType::gemma4,        ModelType::gemma4_vlm,
    ModelType::glm4,          ModelType::glm4_moe,
    ModelType::glm4_moe_lite, ModelType::glm_moe_dsa,
    ModelType::qwen3,         ModelType::qwen3_next,
    ModelType::qwen3_5,       ModelType::qwen3_5_vlm,
    ModelType::qwen3_5_moe,   ModelType::qwen3_5_moe_vlm,
    ModelType::jamba,         ModelType::nemotron_h,
};

inline constexpr ModelType kMtp[] = {
    ModelType::gemma4,
    ModelType::gemma4_vlm,
    ModelType::gemma4_unified,
    ModelType::inkling,
    ModelType::inkling_vlm,
    ModelType::qwen3_5,
    ModelType::qwen3_5_vlm,
    ModelType::qwen3_5_moe,
    ModelType::qwen3_5_moe_vlm,
};

inline constexpr ModelType kDflash[] = {
    ModelType::qwen3_5,
    ModelType::qwen3_5_vlm,
    ModelType::qwen3_5_moe,
    ModelType::qwen3_5_moe_vlm,
    ModelType::muse_glimmer_vlm,
};

inline constexpr ModelType kQuantizedKv[] = {
    ModelType::llama,
    ModelType::iquest_coder,
    ModelType::llama4,
    ModelType::llama4_vlm,
    ModelType::qwen2,
    ModelType::qwen3,
    ModelType::qwen3_moe,
    ModelType::qwen3_vl,
    ModelType::qwen3_vl_moe,
    ModelType::qwen3_5,
    ModelType::qwen3_5_vlm,
    ModelType::qwen3_5_moe,
    ModelType::qwen3_5_moe_vlm,
    ModelType::gemma,
    ModelType::gemma2,
    ModelType::gemma3,
    ModelType::gemma3_vlm,
    ModelType::gemma4,
    ModelType::gemma4_vlm,
    ModelType::mistral3,
    ModelType::mistral3_vlm,
    ModelType::mixtral,
    ModelType::deepseek,
    ModelType::deepseek_v2,
    ModelType::cohere,
    ModelType::cohere2,
    ModelType::internlm2,
    ModelType::internlm3,
    ModelType::glm4,
    ModelType::ernie4_5,
    ModelType::hunyuan_v1_dense,
    ModelType::phi,
    ModelType::phi3,
    ModelType::phi3_vlm,
    ModelType::phi3_small,
    ModelType::gpt2,
    ModelType::gpt_big_code,
    ModelType::gpt_neox,
    ModelType::starcoder2,
    ModelType::stablelm,
    ModelType::smollm3,
    ModelType::ministral3,
};

inline constexpr ModelType kPagedByDefault[] = {
    ModelType::llama,
    ModelType::llama4,
    ModelType::qwen3,
    ModelType::qwen3_5,
    ModelType::gemma3,
};

}  // namespace mlxcel::facts
