#include "mlxcel/loading/detect.h"

#include <gtest/gtest.h>

#include "mlxcel/config/config.h"
#include "mlxcel/loading/policy.h"
#include "tests/unit/support/expect_error.h"

namespace mlxcel {
namespace {

// What detection answers is tested by the files of tests/detection.

TEST(Registry, ModelTypesBySpelling) {
  EXPECT_EQ(find_model_type("QWEN3")->type, ModelType::qwen3);
  EXPECT_EQ(find_model_type("Nemotron_NAS")->type, ModelType::nemotron_nas);
  EXPECT_EQ(find_model_type("llava-qwen2")->type, ModelType::llava_bunny_vlm);
  EXPECT_EQ(find_model_type("llava_qwen2")->type, ModelType::fast_vlm);
  for (const char* none : {"", " ", "llama mistral", "llam", "llama "}) {
    EXPECT_EQ(find_model_type(none), nullptr) << none;
  }
}

TEST(Registry, EveryKeyLeadsToItsRow) {
  for (const Descriptor& row : registry()) {
    EXPECT_EQ(&descriptor(row.type), &row);
    for (std::string_view keys = row.model_types; !keys.empty();) {
      size_t end = std::min(keys.find(' '), keys.size());
      EXPECT_EQ(find_model_type(keys.substr(0, end)), &row);
      keys.remove_prefix(std::min(end + 1, keys.size()));
    }
  }
}

TEST(Policy, ComesFromTheRegistry) {
  for (const Descriptor& row : registry()) {
    ModelLoadPolicy policy = model_load_policy(row.type);
    EXPECT_EQ(policy.directory_route, row.directory_route);
    EXPECT_EQ(policy.weight_route, row.weight_route);
    bool refused = policy.weight_route == WeightRoute::none;
    EXPECT_EQ(!policy.adapter_refusal.empty(), refused) << row.id;
    if (refused) {
      EXPECT_NE(
          policy.adapter_refusal.find(row.display_name), std::string::npos
      );
      EXPECT_ERROR(require_adapters(row.type), std::string(row.display_name));
    }
  }
}

TEST(Policy, OnlyBuiltFamiliesLoad) {
  EXPECT_NO_THROW(require_built(ModelType::llama, "d"));
  EXPECT_ERROR(
      require_built(ModelType::jamba, "d"),
      "[loading] d: this build recognises Jamba"
  );
}

TEST(Policy, MistralsDecoder) {
  auto decoder = [](const char* text) {
    return mistral3_decoder(parse_config(text, "f"));
  };
  EXPECT_EQ(decoder("{}"), ModelType::llama);
  EXPECT_EQ(
      decoder(R"({"text_config": {"model_type": "ministral3"}})"),
      ModelType::ministral3
  );
  EXPECT_EQ(
      decoder(R"({"text_config": {"model_type": "Mistral4"}})"),
      ModelType::mistral4
  );
  EXPECT_EQ(
      decoder(R"({"text_config": {"model_type": "mistral"}})"), ModelType::llama
  );
}

}  // namespace
}  // namespace mlxcel
