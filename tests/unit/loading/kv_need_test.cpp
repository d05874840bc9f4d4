#include "mlxcel/loading/estimate/kv_need.h"

#include <gtest/gtest.h>

#include "mlxcel/config/config.h"
#include "mlxcel/loading/detect.h"

namespace mlxcel {
namespace {

KvNeed need(ModelType type, const char* config) {
  return kv_need(type, parse_config(config, "config.json"));
}

// Configs as published on the hub; the products by hand.

TEST(KvNeed, FullAttention) {
  // meta-llama/Llama-3.1-8B: 32 layers x 2 x 8 heads x 128.
  KvNeed llama = need(ModelType::llama, R"({"hidden_size": 4096,
      "num_hidden_layers": 32, "num_attention_heads": 32,
      "num_key_value_heads": 8})");
  EXPECT_TRUE(llama.known);
  EXPECT_EQ(llama.values_per_token(), 65536);
  EXPECT_EQ(llama.values(33), 65536u * 64);
  EXPECT_EQ(llama.detail, "32 layers");
  // openai-community/gpt2: 12 x 2 x 768.
  EXPECT_EQ(
      need(ModelType::gpt2, R"({"n_layer": 12, "n_head": 12, "n_embd": 768})")
          .values_per_token(),
      18432
  );
  // bigcode/starcoder: one head of 128 for all queries, 40 layers.
  EXPECT_EQ(
      need(ModelType::gpt_big_code, R"({"n_layer": 40, "n_head": 48,
          "n_embd": 6144, "multi_query": true})")
          .values_per_token(),
      10240
  );
  // databricks/dbrx-base: 40 x 2 x 8 x 128.
  EXPECT_EQ(
      need(ModelType::dbrx, R"({"d_model": 6144, "n_heads": 48,
          "n_layers": 40, "attn_config": {"kv_n_heads": 8}})")
          .values_per_token(),
      81920
  );
}

TEST(KvNeed, HeadsThatDifferByLayer) {
  // apple/OpenELM-270M: 63 kv heads of 64 in all.
  EXPECT_EQ(
      need(ModelType::openelm, R"({"num_transformer_layers": 16,
          "head_dim": 64, "num_kv_heads":
          [3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5]})")
          .values_per_token(),
      8064
  );
  // nvidia/Llama-3_1-Nemotron-51B: blocks without attention keep nothing.
  EXPECT_EQ(
      need(ModelType::nemotron_nas, R"({"hidden_size": 8192,
          "num_attention_heads": 64, "block_configs": [
            {"attention": {"n_heads_in_group": 8}},
            {"attention": {"no_op": true, "n_heads_in_group": null}},
            {"attention": {"replace_with_linear": true}},
            {"attention": {"n_heads_in_group": 16}}]})")
          .values_per_token(),
      2 * (8 + 4) * 128
  );
}

TEST(KvNeed, SlidingLayersAreCapped) {
  // google/gemma-2-9b: 42 layers of 2 x 8 x 256, every second sees 4096.
  KvNeed gemma2 = need(ModelType::gemma2, R"({"hidden_size": 3584,
      "num_hidden_layers": 42, "num_attention_heads": 16,
      "num_key_value_heads": 8, "head_dim": 256, "sliding_window": 4096})");
  EXPECT_EQ(gemma2.values_per_token(), 21 * 4096);
  EXPECT_EQ(gemma2.values(8192), 21u * 4096 * (4096 + 8192));
  EXPECT_EQ(gemma2.values(1000), 42u * 4096 * 1024);
  EXPECT_EQ(
      gemma2.detail, "42 layers, 21 of them sliding, capped at 4096 tokens"
  );
  // google/gemma-3-4b: 34 layers of 2 x 4 x 256, every sixth is global.
  KvNeed gemma3 = need(ModelType::gemma3, R"({"text_config": {
      "hidden_size": 2560, "num_hidden_layers": 34, "num_attention_heads": 8,
      "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 1024}})");
  EXPECT_EQ(gemma3.values(4096), 2048u * (29 * 1024 + 5 * 4096));
  // openai/gpt-oss-20b: 24 layers of 2 x 8 x 64, sliding first.
  KvNeed oss = need(ModelType::gpt_oss, R"({"hidden_size": 2880,
      "num_hidden_layers": 24, "num_attention_heads": 64, "head_dim": 64,
      "num_key_value_heads": 8, "sliding_window": 128})");
  EXPECT_EQ(oss.values(1024), 1024u * (12 * 128 + 12 * 1024));
  // LGAI-EXAONE/EXAONE-4.0-32B: LLLG of 64 layers, 2 x 8 x 128.
  KvNeed exaone = need(ModelType::exaone4, R"({"hidden_size": 5120,
      "num_hidden_layers": 64, "num_attention_heads": 40, "head_dim": 128,
      "num_key_value_heads": 8, "sliding_window": 4096,
      "sliding_window_pattern": "LLLG"})");
  EXPECT_EQ(exaone.values_per_token(), 16 * 2048);
}

TEST(KvNeed, SlidingThatIsSwitchedOff) {
  // Qwen/Qwen2.5-7B declares a window and does not use it.
  const char* config = R"({"hidden_size": 3584, "num_hidden_layers": 28,
      "num_attention_heads": 28, "num_key_value_heads": 4,
      "sliding_window": 131072, "max_window_layers": 14,
      "use_sliding_window": false})";
  EXPECT_EQ(need(ModelType::qwen2, config).values_per_token(), 28 * 1024);
  std::string used(config);
  used.replace(used.rfind("false"), 5, "true");
  EXPECT_EQ(need(ModelType::qwen2, used.c_str()).values_per_token(), 14 * 1024);
}

TEST(KvNeed, CompressedLatent) {
  // deepseek-ai/DeepSeek-V3: 61 x (512 + 64).
  KvNeed v3 = need(ModelType::deepseek_v3, R"({"num_hidden_layers": 61,
      "kv_lora_rank": 512, "qk_rope_head_dim": 64})");
  EXPECT_EQ(v3.values_per_token(), 35136);
  EXPECT_EQ(v3.detail, "compressed latent: 61 layers of 576 values a token");
  // deepseek-ai/DeepSeek-V3.2-Exp: and the indexer's key of 128.
  EXPECT_EQ(
      need(ModelType::deepseek_v3_2, R"({"num_hidden_layers": 61,
          "kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_head_dim": 128})")
          .values_per_token(),
      61 * 704
  );
  // meituan-longcat/LongCat-Flash-Chat: two attentions per layer.
  EXPECT_EQ(
      need(ModelType::longcat_flash, R"({"num_layers": 28,
          "kv_lora_rank": 512, "qk_rope_head_dim": 64})")
          .values_per_token(),
      56 * 576
  );
}

TEST(KvNeed, HybridsCountWhatAttends) {
  // ai21labs/Jamba-v0.1: layers 4, 12, 20, 28 attend, 2 x 8 x 128.
  KvNeed jamba = need(ModelType::jamba, R"({"hidden_size": 4096,
      "num_hidden_layers": 32, "num_attention_heads": 32,
      "num_key_value_heads": 8, "attn_layer_period": 8,
      "attn_layer_offset": 4})");
  EXPECT_EQ(jamba.values_per_token(), 8192);
  EXPECT_EQ(jamba.detail, "hybrid: 4 of 32 layers attend");
  // Qwen/Qwen3-Next-80B-A3B: 12 of 48, 2 x 2 x 256.
  EXPECT_EQ(
      need(ModelType::qwen3_next, R"({"hidden_size": 2048,
          "num_hidden_layers": 48, "num_attention_heads": 16, "head_dim": 256,
          "num_key_value_heads": 2, "full_attention_interval": 4})")
          .values_per_token(),
      12288
  );
  // nvidia/Nemotron-H-8B: 4 stars, 2 x 8 x 128; the pattern's length counts.
  EXPECT_EQ(
      need(ModelType::nemotron_h, R"({"hidden_size": 4096,
          "num_hidden_layers": 2, "num_attention_heads": 32, "head_dim": 128,
          "num_key_value_heads": 8, "hybrid_override_pattern":
          "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"})")
          .values_per_token(),
      8192
  );
  // google/recurrentgemma-2b: 8 of 26 attend within 2048, 2 x 1 x 256.
  KvNeed griffin = need(ModelType::recurrent_gemma, R"({"hidden_size": 2560,
      "num_hidden_layers": 26, "num_attention_heads": 10,
      "num_key_value_heads": 1, "head_dim": 256,
      "attention_window_size": 2048,
      "block_types": ["recurrent", "recurrent", "attention"]})");
  EXPECT_EQ(griffin.values(8192), 8u * 512 * 2048);
  EXPECT_EQ(griffin.values_per_token(), 0);
  // LiquidAI/LFM2-1.2B has 6 of 16; here 1 of 3, 2 x 8 x 64.
  EXPECT_EQ(
      need(ModelType::lfm2, R"({"hidden_size": 2048, "num_hidden_layers": 3,
          "num_attention_heads": 32, "num_key_value_heads": 8,
          "layer_types": ["conv", "conv", "full_attention"]})")
          .values_per_token(),
      1024
  );
  // moonshotai/Kimi-Linear-48B-A3B: 7 latent layers of 27.
  EXPECT_EQ(
      need(ModelType::kimi_linear, R"({"num_hidden_layers": 27,
          "kv_lora_rank": 512, "qk_rope_head_dim": 64, "linear_attn_config":
          {"full_attn_layers": [4, 8, 12, 16, 20, 24, 27]}})")
          .values_per_token(),
      7 * 576
  );
}

TEST(KvNeed, PatternsOfTheirOwn) {
  // pfnet/plamo-2-1b: 16 layers, each second attends; 2 x 1 x 128 at 16 heads.
  EXPECT_EQ(
      need(ModelType::plamo2, R"({"hidden_size": 2048, "num_hidden_layers": 16,
          "num_attention_heads": 16, "num_key_value_heads": 1,
          "hidden_size_per_head": 128, "mamba_step": 2,
          "mamba_enabled": true})")
          .values_per_token(),
      8 * 256
  );
  // baichuan-inc/Baichuan-M1-14B's fields, cut to 3 layers.
  KvNeed baichuan = need(ModelType::baichuan, R"({"hidden_size": 5120,
      "num_hidden_layers": 3, "num_attention_heads": 20,
      "num_key_value_heads": 2, "num_swa_attention_heads": 40,
      "num_swa_key_value_heads": 8, "sliding_window": 64,
      "sliding_window_layers": [1]})");
  EXPECT_EQ(baichuan.values(128), 2u * (2 * 2 * 256 * 128) + 2 * 8 * 128 * 64);
  // Step 3.5: even layers slide, with more heads.
  KvNeed step = need(ModelType::step3p5, R"({"num_hidden_layers": 2,
      "num_attention_heads": 64, "num_attention_groups": 8, "head_dim": 128,
      "sliding_window": 64,
      "attention_other_setting": {"num_attention_groups": 16}})");
  EXPECT_EQ(step.values(128), 2u * 16 * 128 * 64 + 2u * 8 * 128 * 128);
}

TEST(KvNeed, SharedLayersKeepNothing) {
  // google/gemma-3n-E4B, cut to 10 layers of which the last 5 share.
  KvNeed gemma = need(ModelType::gemma3n, R"({"text_config": {
      "hidden_size": 2048, "num_hidden_layers": 10, "num_attention_heads": 8,
      "num_key_value_heads": 2, "head_dim": 256, "sliding_window": 512,
      "num_kv_shared_layers": 5, "layer_types": [
      "sliding_attention", "sliding_attention", "sliding_attention",
      "sliding_attention", "full_attention", "sliding_attention",
      "sliding_attention", "sliding_attention", "sliding_attention",
      "full_attention"]}})");
  EXPECT_EQ(gemma.values(2048), 1024u * (4 * 512 + 2048));
  // Gemma 4: global layers have heads of their own.
  KvNeed wide = need(ModelType::gemma4, R"({"hidden_size": 2048,
      "num_hidden_layers": 2, "num_attention_heads": 8, "head_dim": 256,
      "num_key_value_heads": 2, "global_head_dim": 512,
      "num_global_key_value_heads": 1, "sliding_window": 512,
      "layer_types": ["sliding_attention", "full_attention"]})");
  EXPECT_EQ(wide.values(1024), 1024u * 512 + 1024u * 1024);
}

TEST(KvNeed, NothingGrows) {
  for (ModelType type :
       {ModelType::mamba,
        ModelType::rwkv7,
        ModelType::bert,
        ModelType::sequence_classifier,
        ModelType::kokoro,
        ModelType::rt_detr_v2}) {
    KvNeed none = need(type, "{}");
    EXPECT_TRUE(none.known) << descriptor(type).id;
    EXPECT_EQ(none.values(1 << 20), 0u);
    EXPECT_NE(none.detail, "");
  }
}

TEST(KvNeed, VisionModelsKeepWhatTheirTextModelKeeps) {
  // llava-hf/llava-1.5-7b: Vicuna, 32 x 2 x 32 x 128.
  EXPECT_EQ(
      need(ModelType::llava_vlm, R"({"text_config": {"model_type": "llama",
          "hidden_size": 4096, "num_hidden_layers": 32,
          "num_attention_heads": 32}, "vision_config": {"hidden_size": 1}})")
          .values_per_token(),
      262144
  );
}

TEST(KvNeed, WhatIsNotKnownSaysWhy) {
  struct Case {
    ModelType type;
    const char* config;
    const char* reason;
  };
  const Case cases[] = {
      {ModelType::llama, "{}", "no num_hidden_layers"},
      {ModelType::llama, R"({"num_hidden_layers": 2})", "no hidden_size"},
      {ModelType::llama,
       R"({"num_hidden_layers": -2, "num_attention_heads": 1})",
       "num_hidden_layers: expected a count, got -2"},
      {ModelType::llama,
       R"({"num_hidden_layers": 1000000000, "num_attention_heads": 1,
          "hidden_size": 1})",
       "num_hidden_layers"},
      {ModelType::llama,
       R"({"num_hidden_layers": 2, "num_attention_heads": 0,
          "hidden_size": 64})",
       "num_attention_heads"},
      {ModelType::gemma3,
       R"({"num_hidden_layers": 1, "num_attention_heads": 1, "hidden_size": 64,
          "layer_types": ["dreaming"]})",
       "dreaming"},
      {ModelType::deepseek_v4, "{}", "not described"},
      {ModelType::deepseek_v3, R"({"num_hidden_layers": 2})", "kv_lora_rank"},
      {ModelType::jamba,
       R"({"num_hidden_layers": 2, "num_attention_heads": 1,
          "hidden_size": 64})",
       "attn_layer_period"},
  };
  for (const Case& one : cases) {
    KvNeed unknown = need(one.type, one.config);
    EXPECT_FALSE(unknown.known) << one.config;
    EXPECT_NE(unknown.detail.find(one.reason), std::string::npos)
        << unknown.detail;
  }
}

TEST(KvNeed, NoRowThrows) {
  for (const Descriptor& row : registry()) {
    for (const char* config :
         {"{}",
          R"({"text_config": {"num_hidden_layers": "x"}})",
          R"({"num_hidden_layers": 3, "num_attention_heads": 2,
              "hidden_size": 8, "layer_types": [1, 2, 3],
              "block_configs": [1], "num_kv_heads": ["a"]})"}) {
      EXPECT_NO_THROW(need(row.type, config)) << row.id;
    }
  }
}

}  // namespace
}  // namespace mlxcel
