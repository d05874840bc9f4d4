#include "mlxcel/loading/estimate/kv_rules.h"

#include "mlxcel/loading/registry.h"

namespace mlxcel::kv {

namespace {

Rule nothing(std::string_view note) {
  return {.kind = Kind::none, .note = note};
}

Rule rule_of_text(ModelType type) {
  switch (type) {
    case ModelType::llama:
    case ModelType::iquest_coder:
    case ModelType::helium:
    case ModelType::telechat3:
    case ModelType::seed_oss:
    case ModelType::apertus:
    case ModelType::smollm3:
    case ModelType::stablelm:
    case ModelType::mimo:
    case ModelType::xverse:
    case ModelType::nanbeige:
    case ModelType::qwen:
    case ModelType::gemma:
    case ModelType::ministral3:
    case ModelType::phi:
    case ModelType::phixtral:
    case ModelType::phi3_small:
    case ModelType::deepseek:
    case ModelType::dots1:
    case ModelType::cohere:
    case ModelType::internlm2:
    case ModelType::internlm3:
    case ModelType::glm:
    case ModelType::glm4:
    case ModelType::glm4_moe:
    case ModelType::ernie4_5:
    case ModelType::ernie4_5_moe:
    case ModelType::hunyuan_v1_dense:
    case ModelType::granite:
    case ModelType::granite_moe:
    case ModelType::exaone:
    case ModelType::solar_open:
    case ModelType::olmo:
    case ModelType::olmo2:
    case ModelType::olmo3:
    case ModelType::olmoe:
    case ModelType::gpt2:
    case ModelType::gptj:
    case ModelType::gpt_neox:
    case ModelType::minicpm:
    case ModelType::bitnet:
    case ModelType::nemotron:
    case ModelType::dbrx:
    case ModelType::bailing_moe:
    case ModelType::arcee:
    case ModelType::klear:
    case ModelType::minimax:
    case ModelType::falcon_h1:
    case ModelType::mellum:
    case ModelType::laguna:
    case ModelType::lille_130m:
    case ModelType::nanochat:
      return {.kind = Kind::attention};
    case ModelType::mixtral:
    case ModelType::phi3:
    case ModelType::phi_moe:
    case ModelType::starcoder2:
      return {.kind = Kind::attention, .windows = Windows::all};
    case ModelType::qwen2:
    case ModelType::qwen2_moe:
      return {.kind = Kind::attention, .windows = Windows::opt_in};
    case ModelType::qwen3:
    case ModelType::qwen3_moe:
      return {
          .kind = Kind::attention, .windows = Windows::opt_in, .head_dim = 128};
    case ModelType::gemma2:
      return {
          .kind = Kind::attention,
          .windows = Windows::alternate,
          .head_dim = 256};
    case ModelType::gemma3:
      return {
          .kind = Kind::attention,
          .windows = Windows::every,
          .head_dim = 256,
          .period = 6,
          .default_window = 4096};
    case ModelType::cohere2:
    case ModelType::cohere2_moe:
      return {
          .kind = Kind::attention,
          .windows = Windows::every,
          .period = 4,
          .default_window = 4096};
    case ModelType::afmoe:
    case ModelType::exaone4:
    case ModelType::exaone_moe:
      return {.kind = Kind::attention, .windows = Windows::every, .period = 4};
    case ModelType::gpt_oss:
      return {
          .kind = Kind::attention,
          .windows = Windows::alternate,
          .head_dim = 64};
    case ModelType::gpt_big_code:
      return {.kind = Kind::attention, .multi_query = true};
    case ModelType::llama4:
    case ModelType::llama4_text:
      return {
          .kind = Kind::attention,
          .windows = Windows::chunks,
          .default_window = 8192};
    case ModelType::deepseek_v2:
    case ModelType::deepseek_v3:
    case ModelType::deepseek_v3_2:
    case ModelType::joyai_llm_flash:
    case ModelType::kimi_k2:
    case ModelType::youtu_llm:
    case ModelType::glm4_moe_lite:
    case ModelType::glm_moe_dsa:
    case ModelType::mistral4:
    case ModelType::minicpm3:
      return {.kind = Kind::latent};
    case ModelType::longcat_flash:
    case ModelType::longcat_flash_ngram:
      return {.kind = Kind::latent, .caches_per_layer = 2};
    case ModelType::jamba:
      return {.kind = Kind::jamba};
    case ModelType::qwen3_next:
    case ModelType::qwen3_5:
    case ModelType::qwen3_5_moe:
      return {.kind = Kind::interval, .head_dim = 256};
    case ModelType::granite_moe_hybrid:
    case ModelType::olmo_hybrid:
    case ModelType::lfm2:
    case ModelType::lfm2_moe:
      return {.kind = Kind::layer_types};
    case ModelType::nemotron_h:
      return {.kind = Kind::nemotron_h};
    case ModelType::recurrent_gemma:
      return {.kind = Kind::griffin};
    case ModelType::bailing_moe_linear:
      return {.kind = Kind::group_of_linear};
    case ModelType::kimi_linear:
      return {.kind = Kind::kimi_linear};
    case ModelType::minimax_text01:
      return {.kind = Kind::attention_list};
    case ModelType::gemma3n:
      return {.kind = Kind::shared_tail};
    case ModelType::gemma4:
      return {.kind = Kind::gemma4, .head_dim = 256};
    case ModelType::plamo2:
      return {.kind = Kind::plamo2};
    case ModelType::step3p5:
      return {.kind = Kind::step3p5};
    case ModelType::baichuan:
      return {.kind = Kind::baichuan};
    case ModelType::mimo_v2_flash:
      return {.kind = Kind::mimo_flash};
    case ModelType::openelm:
      return {.kind = Kind::per_layer_heads};
    case ModelType::nemotron_nas:
      return {.kind = Kind::nas};
    case ModelType::hunyuan_moe:
      return {.kind = Kind::cross_layer};
    case ModelType::mamba:
    case ModelType::mamba2:
    case ModelType::rwkv7:
      return nothing(
          "recurrent: the state does not grow with the context and is not "
          "counted"
      );
    default:
      return {
          .kind = Kind::unknown,
          .note = "what its layers keep is not described in this build"};
  }
}

// Vision models whose decoder has the fields of a text model.
Rule rule_of_vision(ModelType type) {
  switch (type) {
    case ModelType::qwen2_vl:
    case ModelType::qwen2_5_vl:
      return {.kind = Kind::attention, .windows = Windows::opt_in};
    case ModelType::qwen3_vl:
    case ModelType::qwen3_vl_moe:
      return {.kind = Kind::attention, .head_dim = 128};
    case ModelType::qwen3_5_vlm:
    case ModelType::qwen3_5_moe_vlm:
      return rule_of_text(ModelType::qwen3_5);
    case ModelType::phi3_vlm:
    case ModelType::phi4_mm_vlm:
      return rule_of_text(ModelType::phi3);
    case ModelType::gemma3_vlm:
      return rule_of_text(ModelType::gemma3);
    case ModelType::gemma3n_vlm:
      return rule_of_text(ModelType::gemma3n);
    case ModelType::gemma4_vlm:
    case ModelType::gemma4_unified:
      return rule_of_text(ModelType::gemma4);
    case ModelType::llama4_vlm:
      return rule_of_text(ModelType::llama4);
    case ModelType::glm4v:
    case ModelType::glm4v_moe:
    case ModelType::paddleocr_vl:
    case ModelType::minicpm_o_vlm:
      return {.kind = Kind::attention};
    default:
      return rule_of_text(type);
  }
}

}  // namespace

Rule rule_of(ModelType type) {
  switch (descriptor(type).category) {
    case Category::embedding:
      return nothing("an encoder keeps nothing between its inputs");
    case Category::reranker:
      return nothing("a scorer keeps nothing between its inputs");
    case Category::detection:
      return nothing("a detector keeps nothing between its images");
    case Category::tts:
      return nothing("the synthesiser keeps nothing between its texts");
    case Category::asr:
      return {.kind = Kind::whisper};
    case Category::vlm:
      return rule_of_vision(type);
    default:
      return rule_of_text(type);
  }
}

}  // namespace mlxcel::kv
