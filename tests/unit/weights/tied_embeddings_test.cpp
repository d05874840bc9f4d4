#include "mlxcel/weights/tied_embeddings.h"

#include "mlxcel/core/json.h"
#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

WeightMap map_of(const std::vector<std::string>& names) {
  WeightMap weights;
  for (const std::string& name : names) {
    weights.insert(name, make_weight<uint8_t>(DType::u8, {1}, {1}));
  }
  return weights;
}

WeightMap restored(
    const std::string& config, const std::vector<std::string>& names
) {
  WeightMap weights = map_of(names);
  restore_tied_embeddings(Json::parse(config, "config.json"), weights);
  return weights;
}

const std::vector<std::string> kPlanes = {
    "model.embed_tokens.weight",
    "model.embed_tokens.scales",
    "model.embed_tokens.biases"};

TEST(TiedEmbeddings, MissingHeadGetsTheHandlesOfTheEmbedding) {
  for (const char* config :
       {"{}",
        R"({"tie_word_embeddings":true})",
        R"({"tie_word_embeddings":null})",
        R"({"text_config":{"tie_word_embeddings":true}})",
        R"({"text_config":null})"}) {
    WeightMap weights = restored(config, kPlanes);
    EXPECT_EQ(weights.size(), 6u) << config;
    for (const char* plane : {"weight", "scales", "biases"}) {
      EXPECT_EQ(
          weights.at(std::string("lm_head.") + plane).source,
          weights.at(std::string("model.embed_tokens.") + plane).source
      );
    }
  }
}

TEST(TiedEmbeddings, DenseEmbeddingGivesTheWeightAlone) {
  WeightMap weights = restored("{}", {"model.embed_tokens.weight"});
  EXPECT_TRUE(weights.contains("lm_head.weight"));
  EXPECT_FALSE(weights.contains("lm_head.scales"));
}

TEST(TiedEmbeddings, ExplicitFalseLeavesTheHeadMissing) {
  for (const char* config :
       {R"({"tie_word_embeddings":false})",
        R"({"text_config":{"tie_word_embeddings":false}})",
        R"({"tie_word_embeddings":false,)"
        R"("text_config":{"tie_word_embeddings":true}})"}) {
    EXPECT_FALSE(restored(config, kPlanes).contains("lm_head.weight"))
        << config;
  }
  // The top level comes first.
  EXPECT_TRUE(restored(
                  R"({"tie_word_embeddings":true,)"
                  R"("text_config":{"tie_word_embeddings":false}})",
                  kPlanes
  )
                  .contains("lm_head.weight"));
}

// mlx-lm #1298: a tied checkpoint that stores its head as well.
TEST(TiedEmbeddings, StoredHeadIsKept) {
  WeightMap weights = map_of({"model.embed_tokens.weight", "lm_head.weight"});
  auto head = weights.at("lm_head.weight").source;
  restore_tied_embeddings(Json::parse("{}", "c"), weights);
  EXPECT_EQ(weights.at("lm_head.weight").source, head);
  EXPECT_EQ(weights.size(), 2u);
}

TEST(TiedEmbeddings, WrappedLanguageModel) {
  WeightMap weights =
      restored("{}", {"language_model.model.embed_tokens.weight"});
  EXPECT_TRUE(weights.contains("language_model.lm_head.weight"));
  EXPECT_FALSE(weights.contains("lm_head.weight"));
  size_t size = weights.size();
  restore_tied_embeddings(Json::parse("{}", "c"), weights);
  EXPECT_EQ(weights.size(), size);
}

TEST(TiedEmbeddings, FlagOfTheWrongTypeIsNamed) {
  expect_error(
      [] { restored(R"({"tie_word_embeddings":"no"})", kPlanes); },
      ErrorCode::invalid_input,
      {"tie_word_embeddings", "config.json"}
  );
}

}  // namespace
}  // namespace mlxcel::test
