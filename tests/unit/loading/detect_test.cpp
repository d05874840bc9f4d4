#include "mlxcel/loading/detect.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "mlxcel/config/config.h"
#include "mlxcel/loading/policy.h"
#include "tests/unit/support/expect_error.h"
#include "tests/unit/support/temporary_directory.h"

namespace mlxcel {
namespace {

Json config(const std::string& text) {
  return parse_config(text, "dir/config.json");
}

TEST(Detect, TypesByAllSpellings) {
  EXPECT_EQ(
      get_model_type(config(R"({"model_type": "llama"})")), ModelType::llama
  );
  EXPECT_EQ(
      get_model_type(config(R"({"model_type": "Mistral"})")), ModelType::llama
  );
  EXPECT_EQ(
      get_model_type(config(R"({"model_type": "QWEN3"})")), ModelType::qwen3
  );
}

TEST(Detect, UnknownTypeIsNamedAsWritten) {
  EXPECT_ERROR(
      get_model_type(config(R"({"model_type": "Klear"})")),
      "model_type \"Klear\" is not a supported architecture; `mlxcel arch`"
  );
  EXPECT_ERROR(get_model_type(config("{}")), "model_type: the key is missing");
  EXPECT_ERROR(
      get_model_type(config(R"({"model_type": 3})")), "model_type: the key"
  );
  EXPECT_ERROR(
      get_model_type(config(R"({"model_type": "llama mistral"})")),
      "not a supported"
  );
}

TEST(Detect, PoolingFilesMakeAnEmbedder) {
  TemporaryDirectory dir;
  Json qwen3 =
      config(R"({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]})"
      );
  EXPECT_EQ(model_kind(dir.path(), qwen3), ModelKind::generation);
  dir.write("modules.json", "not json");
  EXPECT_EQ(model_kind(dir.path(), qwen3), ModelKind::generation);
  dir.write(
      "modules.json", R"([{"type": "sentence_transformers.models.Pooling"}])"
  );
  EXPECT_EQ(model_kind(dir.path(), qwen3), ModelKind::embedding);
  std::filesystem::remove(dir / "modules.json");
  std::filesystem::create_directory(dir / "1_Pooling");
  dir.write("1_Pooling/config.json", "{}");
  EXPECT_EQ(model_kind(dir.path(), qwen3), ModelKind::embedding);
}

TEST(Detect, ClassesDecideTheKind) {
  TemporaryDirectory dir;
  auto kind = [&](const char* text) {
    return model_kind(dir.path(), config(text));
  };
  EXPECT_EQ(
      kind(R"({"architectures": ["LlamaForSequenceClassification"]})"),
      ModelKind::reranker
  );
  EXPECT_EQ(kind(R"({"model_type": "bert"})"), ModelKind::embedding);
  EXPECT_EQ(
      kind(R"({"model_type": "gemma", "use_bidirectional_attention": true})"),
      ModelKind::embedding
  );
  EXPECT_EQ(kind(R"({"architectures": "x"})"), ModelKind::generation);
  EXPECT_ERROR(
      kind(R"({"architectures": ["LlamaForTokenClassification"]})"),
      "LlamaForTokenClassification neither generates"
  );
  EXPECT_ERROR(
      kind(R"({"model_type": "qwen3", "dflash_config": {}})"), "drafter"
  );
  EXPECT_EQ(kind(R"({"dflash_config": true})"), ModelKind::generation);
}

TEST(Policy, ComesFromTheRegistry) {
  for (const Descriptor& entry : registry()) {
    ModelLoadPolicy policy = model_load_policy(entry.type);
    EXPECT_EQ(policy.directory_route, entry.directory_route);
    EXPECT_EQ(policy.weight_route, entry.weight_route);
  }
}

}  // namespace
}  // namespace mlxcel
