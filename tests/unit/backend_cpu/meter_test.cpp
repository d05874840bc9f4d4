#include "mlxcel/backend/cpu/cpu_meter.h"

#include <gtest/gtest.h>

#include "mlxcel/config/config.h"
#include "mlxcel/engine/engine.h"
#include "mlxcel/loading/detect.h"
#include "mlxcel/loading/registry.h"
#include "mlxcel/weights/shards.h"
#include "mlxcel/weights/synthetic.h"
#include "mlxcel/weights/tied_embeddings.h"
#include "tests/unit/support/temporary_directory.h"

namespace mlxcel {
namespace {

using backend::cpu::CpuBackend;
using backend::cpu::CpuMeter;
using backend::cpu::CpuOptions;

constexpr int kThreads = 2;

struct MeterCase {
  const char* name;
  const char* config;
  int bits;
  bool exact;
};

const MeterCase kCases[] = {
    {"llama",
     R"({"model_type": "llama", "hidden_size": 128, "num_hidden_layers": 3,
         "num_attention_heads": 4, "num_key_value_heads": 2,
         "intermediate_size": 448, "vocab_size": 1000})",
     4,
     false},
    {"exact",
     R"({"model_type": "llama", "hidden_size": 128, "num_hidden_layers": 2,
         "num_attention_heads": 4, "intermediate_size": 448,
         "vocab_size": 1000})",
     0,
     true},
    {"window",
     R"({"model_type": "mistral", "hidden_size": 128, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 1,
         "intermediate_size": 64, "vocab_size": 300, "sliding_window": 200})",
     8,
     false},
    {"gemma",
     R"({"model_type": "gemma", "hidden_size": 128, "num_hidden_layers": 2,
         "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 96,
         "intermediate_size": 512, "vocab_size": 2000,
         "hidden_act": "gelu_pytorch_tanh"})",
     4,
     false},
};

class Meters : public testing::TestWithParam<MeterCase> {
 protected:
  Meters() : config_(parse_config(GetParam().config, "config.json")) {
    const Family& family = *descriptor(get_model_type(config_)).family;
    SyntheticOptions synthetic;
    synthetic.bits = GetParam().bits;
    write_synthetic(family.tensors(config_), directory_.path(), synthetic);
    weights_ = load_weights(directory_.path());
    restore_tied_embeddings(config_, weights_);
    options_.exact = GetParam().exact;
    options_.isa = backend::cpu::chosen_isa();
    options_.half_state = !options_.exact;
    if (options_.exact) {
      options_.activations = backend::cpu::ActivationMode::float32;
    }
  }

  std::unique_ptr<LanguageModel> build(std::shared_ptr<backend::Backend> backend
  ) {
    return descriptor(get_model_type(config_))
        .family->build({config_, weights_, {}, std::move(backend)});
  }

  TemporaryDirectory directory_;
  Json config_;
  WeightMap weights_;
  CpuOptions options_;
};

// A prompt in two pieces and some tokens behind it, on the engine.
uint64_t run(LanguageModel& model) {
  constexpr int64_t kPrompt = 300;
  Engine engine(model, kPrompt + 10);
  std::unique_ptr<Sequence> sequence = engine.open();
  std::vector<int32_t> prompt(kPrompt, 7);
  backend::Tensor logits = engine.prefill(*sequence, prompt, 256);
  int32_t token = 1;
  for (int i = 0; i < 5; ++i) {
    StepInput input{
        sequence.get(), {&token, 1}, backend::Role::generated, Logits::last};
    logits = engine.step({&input, 1});
  }
  return engine.state_bytes(32);
}

TEST_P(Meters, CountWhatTheBackendHolds) {
  ThreadPool pool(kThreads);
  auto real = std::make_shared<CpuBackend>(options_, pool);
  auto meter = std::make_shared<CpuMeter>(options_, kThreads);
  std::unique_ptr<LanguageModel> model = build(real);
  std::unique_ptr<LanguageModel> metered = build(meter);
  EXPECT_EQ(run(*model), run(*metered));
  EXPECT_GT(real->arena_bytes(), 0);
  EXPECT_EQ(real->arena_bytes(), meter->arena_bytes());
  uint64_t stored = 0;
  for (const auto& [name, weight] : weights_) {
    // A tied head is the embedding once more.
    stored +=
        name.starts_with("lm_head") && weights_.contains("lm_head.weight") &&
                weight.source ==
                    weights_.at("model.embed_tokens" + name.substr(7)).source
            ? 0
            : weight.bytes().size();
  }
  EXPECT_EQ(meter->use().weights, stored);
}

INSTANTIATE_TEST_SUITE_P(
    Cpu,
    Meters,
    testing::ValuesIn(kCases),
    [](const testing::TestParamInfo<MeterCase>& one) {
      return std::string(one.param.name);
    }
);

}  // namespace
}  // namespace mlxcel
