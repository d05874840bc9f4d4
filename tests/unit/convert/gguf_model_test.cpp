#include "mlxcel/weights/convert/gguf/gguf_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "tests/unit/convert/gguf_builder.h"
#include "tests/unit/support/expect_error.h"
#include "tests/unit/support/temporary_directory.h"

namespace mlxcel::convert {

namespace {

class GgufModelTest : public ::testing::Test {
 protected:
  ModelPlan plan(GgufBuilder builder) {
    gguf_ = std::make_unique<GgufFile>(
        GgufFile::open(directory_.write("m.gguf", builder.build()))
    );
    return plan_model(*gguf_);
  }
  static const TensorPlan& find(const ModelPlan& plan, const char* name) {
    for (const TensorPlan& tensor : plan.tensors) {
      if (tensor.name == name) {
        return tensor;
      }
    }
    throw std::out_of_range(name);
  }

  TemporaryDirectory directory_;
  std::unique_ptr<GgufFile> gguf_;
};

// Factors of Llama 3's scaling by transformers' formula
// (_compute_llama3_parameters), in float32 as llama.cpp stores them.
std::vector<float> llama3_factors(
    int count,
    double theta,
    double factor,
    double low,
    double high,
    double context
) {
  std::vector<float> factors;
  for (int i = 0; i < count; ++i) {
    double frequency = std::pow(theta, -static_cast<double>(i) / count);
    double wavelength = 2 * std::numbers::pi / frequency;
    double smooth = (context / wavelength - low) / (high - low);
    double value = wavelength < context / high ? 1
                   : wavelength > context / low
                       ? factor
                       : 1 / ((1 - smooth) / factor + smooth);
    factors.push_back(static_cast<float>(value));
  }
  return factors;
}

std::string float_bytes(const std::vector<float>& values) {
  return {
      reinterpret_cast<const char*>(values.data()),
      values.size() * sizeof(float)};
}

}  // namespace

TEST_F(GgufModelTest, LlamaConfig) {
  nlohmann::ordered_json json = model_config(plan(tiny_model()).parameters);
  EXPECT_EQ(
      json.dump(),
      R"({"architectures":["LlamaForCausalLM"],"model_type":"llama",)"
      R"("hidden_size":64,"intermediate_size":96,"num_hidden_layers":2,)"
      R"("num_attention_heads":4,"num_key_value_heads":2,)"
      R"("hidden_act":"silu","rms_norm_eps":1e-05,"rope_theta":10000.0,)"
      R"("vocab_size":12,"max_position_embeddings":128,)"
      R"("tie_word_embeddings":true,"attention_bias":false,)"
      R"("mlp_bias":false})"
  );
}

TEST_F(GgufModelTest, TiedExactlyWithoutOutput) {
  EXPECT_TRUE(plan(tiny_model()).parameters.tied);
  ModelPlan untied = plan(tiny_model({.output = true}));
  EXPECT_FALSE(untied.parameters.tied);
  EXPECT_EQ(find(untied, "lm_head.weight").source->name, "output.weight");
}

TEST_F(GgufModelTest, OtherArchitectures) {
  nlohmann::ordered_json qwen2 =
      model_config(plan(tiny_model({.architecture = "qwen2"})).parameters);
  EXPECT_EQ(qwen2["model_type"], "qwen2");
  EXPECT_EQ(qwen2["architectures"][0], "Qwen2ForCausalLM");

  ModelPlan qwen3 = plan(tiny_model({.architecture = "qwen3"}));
  EXPECT_EQ(model_config(qwen3.parameters)["head_dim"], 16);
  EXPECT_EQ(
      find(qwen3, "model.layers.1.self_attn.q_norm.weight").source->name,
      "blk.1.attn_q_norm.weight"
  );

  ModelPlan gemma = plan(tiny_model({.architecture = "gemma"}));
  EXPECT_EQ(model_config(gemma.parameters)["hidden_act"], "gelu_pytorch_tanh");
  EXPECT_TRUE(find(gemma, "model.norm.weight").subtract_one);
  EXPECT_TRUE(find(gemma, "model.layers.0.input_layernorm.weight").subtract_one
  );
  EXPECT_FALSE(find(gemma, "model.embed_tokens.weight").subtract_one);
}

TEST_F(GgufModelTest, Qwen2HasBiases) {
  ModelPlan qwen2 = plan(tiny_model({.architecture = "qwen2"}));
  const TensorPlan& bias = find(qwen2, "model.layers.0.self_attn.k_proj.bias");
  EXPECT_EQ(bias.rows, 32);
  EXPECT_EQ(bias.columns(), 1);
  EXPECT_EQ(bias.heads, 0);
  GgufBuilder without = tiny_model({.architecture = "qwen2"});
  without.remove_tensor("blk.1.attn_v.bias");
  EXPECT_ERROR(plan(without), "tensor \"blk.1.attn_v.bias\": missing");
}

// LlamaModel.permute: reshape(heads, 2, half).swapaxes(1, 2).
TEST_F(GgufModelTest, RowsOfRotatedHeadsGoBackToHalves) {
  ModelPlan llama = plan(tiny_model());
  const TensorPlan& query =
      find(llama, "model.layers.0.self_attn.q_proj.weight");
  const TensorPlan& key = find(llama, "model.layers.0.self_attn.k_proj.weight");
  EXPECT_EQ(query.heads, 4);
  EXPECT_EQ(key.heads, 2);
  std::vector<int64_t> stored(64);  // which original row lies where
  for (int64_t head = 0; head < 4; ++head) {
    for (int64_t s = 0; s < 2; ++s) {
      for (int64_t i = 0; i < 8; ++i) {
        stored[static_cast<size_t>(head * 16 + 2 * i + s)] =
            head * 16 + s * 8 + i;
      }
    }
  }
  for (int64_t row = 0; row < 64; ++row) {
    EXPECT_EQ(stored[static_cast<size_t>(query.source_row(row))], row);
  }
  EXPECT_EQ(find(llama, "model.layers.0.self_attn.v_proj.weight").heads, 0);
  ModelPlan qwen3 = plan(tiny_model({.architecture = "qwen3"}));
  EXPECT_EQ(find(qwen3, "model.layers.0.self_attn.q_proj.weight").heads, 0);
}

TEST_F(GgufModelTest, FusedQueryKeyValueIsCut) {
  GgufBuilder builder = tiny_model({.layers = 1, .type = GgmlType::f16});
  std::string fused;
  for (const char* part : {"q", "k", "v"}) {
    std::string name = std::string("blk.0.attn_") + part + ".weight";
    fused += builder.tensor_data(name);
    builder.remove_tensor(name);
  }
  builder.tensor("blk.0.attn_qkv.weight", GgmlType::f16, {128, 64}, fused);
  ModelPlan llama = plan(builder);
  const TensorPlan& key = find(llama, "model.layers.0.self_attn.k_proj.weight");
  EXPECT_EQ(key.first_row, 64);
  EXPECT_EQ(key.rows, 32);
  EXPECT_EQ(key.source_row(0), 64);
  EXPECT_EQ(key.source_row(8), 65);  // second half of the first head
  const TensorPlan& value =
      find(llama, "model.layers.0.self_attn.v_proj.weight");
  EXPECT_EQ(value.source_row(31), 127);
}

TEST_F(GgufModelTest, LlamaBiases) {
  GgufBuilder builder = tiny_model({.layers = 1});
  for (const char* part : {"q", "k", "v", "output"}) {
    int64_t size = part[0] == 'k' || part[0] == 'v' ? 32 : 64;
    builder.tensor(
        std::string("blk.0.attn_") + part + ".bias",
        GgmlType::f32,
        {size},
        std::string(static_cast<size_t>(size) * 4, '\0')
    );
  }
  ModelPlan biased = plan(builder);
  EXPECT_TRUE(biased.parameters.attention_bias);
  EXPECT_EQ(find(biased, "model.layers.0.self_attn.q_proj.bias").heads, 4);
  builder.remove_tensor("blk.0.attn_output.bias");
  EXPECT_ERROR(plan(builder), "tensor \"blk.0.attn_output.bias\": missing");
}

TEST_F(GgufModelTest, MissingWrongAndUnknownTensorsAreNamed) {
  GgufBuilder missing = tiny_model();
  missing.remove_tensor("blk.1.ffn_up.weight");
  EXPECT_ERROR(plan(missing), "tensor \"blk.1.ffn_up.weight\": missing");

  GgufBuilder shape = tiny_model();
  shape.remove_tensor("output_norm.weight");
  shape.tensor(
      "output_norm.weight", GgmlType::f32, {63}, std::string(63 * 4, '\0')
  );
  EXPECT_ERROR(
      plan(shape),
      "tensor \"output_norm.weight\": expected shape [64], got [63]"
  );

  GgufBuilder quantised = tiny_model();
  quantised.remove_tensor("output_norm.weight");
  quantised.tensor(
      "output_norm.weight", GgmlType::q8_0, {64}, std::string(68, '\0')
  );
  EXPECT_ERROR(
      plan(quantised), "tensor \"output_norm.weight\" type: Q8_0 for a vector"
  );

  GgufBuilder unknown = tiny_model();
  unknown.tensor(
      "blk.0.attn_sinks.weight", GgmlType::f32, {4}, std::string(16, '\0')
  );
  EXPECT_ERROR(
      plan(unknown), "tensor \"blk.0.attn_sinks.weight\": not a tensor of llama"
  );
}

TEST_F(GgufModelTest, WhatChangesTheArithmeticIsRefusedByName) {
  struct Case {
    const char* key;
    float value;
  };
  for (const Case& c : std::vector<Case>{
           {"llama.expert_count", 8},
           {"llama.rope.scaling.yarn_log_multiplier", 0.5f},
           {"llama.logit_scale", 2},
       }) {
    GgufBuilder builder = tiny_model();
    builder.put(c.key, c.value);
    EXPECT_ERROR(plan(builder), std::string(c.key) + ": ");
  }
  GgufBuilder neutral = tiny_model();
  neutral.put("llama.expert_count", uint32_t{0});
  neutral.put("llama.attention.causal", true);
  neutral.put("llama.pooling_type", uint32_t{1});
  neutral.put("other.thing", uint32_t{1});
  EXPECT_EQ(plan(neutral).parameters.layers, 2);

  GgufBuilder split = tiny_model();
  split.put("split.count", GgufType::uint16, uint16_t{3});
  EXPECT_ERROR(plan(split), "split.count: ");
  GgufBuilder adapter = tiny_model();
  adapter.put("general.type", "adapter");
  EXPECT_ERROR(plan(adapter), "general.type: \"adapter\"");
  EXPECT_ERROR(
      plan(tiny_model({.architecture = "mamba"})),
      "general.architecture: \"mamba\" is not supported"
  );
}

TEST_F(GgufModelTest, BadSizesAreNamed) {
  struct Case {
    const char* key;
    uint32_t value;
  };
  for (const Case& c : std::vector<Case>{
           {"llama.block_count", 0},
           {"llama.block_count", 1000000},
           {"llama.attention.head_count", 0},
           {"llama.attention.head_count", 6},
           {"llama.attention.head_count_kv", 3},
           {"llama.rope.dimension_count", 8},
           {"llama.vocab_size", 13},
       }) {
    GgufBuilder builder = tiny_model();
    builder.replace(c.key, c.value);
    EXPECT_ERROR(plan(builder), std::string(c.key) + ": ");
  }
  GgufBuilder lengths = tiny_model({.architecture = "qwen3"});
  lengths.replace("qwen3.attention.value_length", uint32_t{8});
  EXPECT_ERROR(plan(lengths), "qwen3.attention.value_length: 8");
}

TEST_F(GgufModelTest, LinearAndYarnScaling) {
  GgufBuilder linear = tiny_model();
  linear.put("llama.rope.scaling.type", "linear");
  linear.put("llama.rope.scaling.factor", 4.0f);
  EXPECT_EQ(
      model_config(plan(linear).parameters)["rope_scaling"].dump(),
      R"({"type":"linear","rope_type":"linear","factor":4.0})"
  );
  GgufBuilder yarn = tiny_model({.architecture = "qwen2"});
  yarn.put("qwen2.rope.scaling.type", "yarn");
  yarn.put("qwen2.rope.scaling.factor", 4.0f);
  yarn.put("qwen2.rope.scaling.original_context_length", uint32_t{32});
  EXPECT_EQ(
      model_config(plan(yarn).parameters)["rope_scaling"].dump(),
      R"({"type":"yarn","rope_type":"yarn","factor":4.0,)"
      R"("original_max_position_embeddings":32})"
  );
  GgufBuilder longrope = tiny_model();
  longrope.put("llama.rope.scaling.type", "longrope");
  longrope.put("llama.rope.scaling.factor", 4.0f);
  EXPECT_ERROR(plan(longrope), "llama.rope.scaling.type: \"longrope\"");
}

TEST_F(GgufModelTest, Llama3ScalingIsFoundInItsFactors) {
  struct Case {
    double theta;
    double factor;
    double low;
    double high;
    double context;
    double found_high;
    int64_t found_context;
  };
  // Llama 3.1, 3.2, an odd one, and one whose common multiple is lost.
  for (const Case& c : std::vector<Case>{
           {500000, 8, 1, 4, 8192, 4, 8192},
           {500000, 32, 1, 4, 8192, 4, 8192},
           {10000, 6, 1, 3, 2048, 3, 2048},
           {500000, 8, 2, 8, 16384, 4, 8192},
       }) {
    auto scaling = fit_llama3_scaling(
        llama3_factors(64, c.theta, c.factor, c.low, c.high, c.context), c.theta
    );
    ASSERT_TRUE(scaling.has_value()) << c.context;
    EXPECT_EQ(scaling->type, "llama3");
    EXPECT_EQ(scaling->factor, c.factor);
    EXPECT_EQ(scaling->low_freq_factor, 1);
    EXPECT_EQ(scaling->high_freq_factor, c.found_high);
    EXPECT_EQ(scaling->original_context, c.found_context);
  }
  EXPECT_EQ(fit_llama3_scaling({1, 2, 3, 8}, 10000), std::nullopt);
  EXPECT_EQ(fit_llama3_scaling({1, 1, 1, 0}, 10000), std::nullopt);
  EXPECT_EQ(fit_llama3_scaling({1, 1, std::nanf(""), 8}, 10000), std::nullopt);
}

TEST_F(GgufModelTest, RopeFrequenciesBecomeLlama3Scaling) {
  GgufBuilder builder = tiny_model();
  builder.replace("llama.rope.freq_base", 500000.0f);
  std::vector<float> factors = llama3_factors(8, 500000, 8, 1, 4, 8192);
  builder.tensor("rope_freqs.weight", GgmlType::f32, {8}, float_bytes(factors));
  EXPECT_EQ(
      model_config(plan(builder).parameters)["rope_scaling"].dump(),
      R"({"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,)"
      R"("high_freq_factor":4.0,"original_max_position_embeddings":8192})"
  );
  builder.remove_tensor("rope_freqs.weight");
  factors[6] *= 1.1f;
  builder.tensor("rope_freqs.weight", GgmlType::f32, {8}, float_bytes(factors));
  EXPECT_ERROR(plan(builder), "tensor \"rope_freqs.weight\": these factors");
  builder.remove_tensor("rope_freqs.weight");
  builder.tensor(
      "rope_freqs.weight",
      GgmlType::f32,
      {8},
      float_bytes(std::vector<float>(8, 1))
  );
  EXPECT_FALSE(plan(builder).parameters.rope_scaling.has_value());
}

}  // namespace mlxcel::convert
