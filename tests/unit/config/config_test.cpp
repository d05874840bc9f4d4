#include "mlxcel/config/config.h"

#include <gtest/gtest.h>

#include "tests/unit/support/expect_error.h"
#include "tests/unit/support/temporary_directory.h"

namespace mlxcel {
namespace {

TEST(SanitizeConfig, RepairsLiteralsOutsideStrings) {
  EXPECT_EQ(
      sanitize_config_text(
          R"({"a": Infinity, "b": [-Infinity, NaN], "c": "NaN-\"Infinity"})"
      ),
      R"({"a": 1e38, "b": [-1e38, 0.0], "c": "NaN-\"Infinity"})"
  );
}

TEST(SanitizeConfig, RemovesMarkAndTrailingCommas) {
  EXPECT_EQ(
      sanitize_config_text("\xef\xbb\xbf{\"a\": [1, 2, ], \"b\": \",]\",\n}"),
      "{\"a\": [1, 2 ], \"b\": \",]\"\n}"
  );
}

TEST(SanitizeConfig, LeavesLookalikesToTheParser) {
  EXPECT_EQ(sanitize_config_text("{\"a\": NaNs}"), "{\"a\": NaNs}");
  EXPECT_EQ(sanitize_config_text("{\"a\": \"x"), "{\"a\": \"x");
  EXPECT_EQ(sanitize_config_text("{,}"), "{,}");
  EXPECT_EQ(sanitize_config_text("[1,,]"), "[1,,]");
  EXPECT_ERROR(parse_config("{\"a\": NaNs}", "f"), "f");
}

TEST(Config, ReadsADirectory) {
  TemporaryDirectory dir;
  EXPECT_ERROR(
      read_config(dir.path()),
      dir / "config.json" + ": missing; a model directory needs it"
  );
  dir.write("config.json", R"({"max_position_embeddings": 2048,})");
  EXPECT_EQ(context_window(read_config(dir.path())), 2048);
  dir.write("config.json", "[]");
  EXPECT_ERROR(read_config(dir.path()), "expected an object, got a list");
}

TEST(Config, ContextWindowPrefersTheTextModel) {
  auto window = [](const char* text) {
    return context_window(parse_config(text, "f"));
  };
  EXPECT_EQ(window(R"({"n_positions": 1024})"), 1024);
  EXPECT_EQ(
      window(R"({"max_position_embeddings": 5,
                 "text_config": {"n_positions": 7}})"),
      7
  );
  EXPECT_EQ(window(R"({"max_position_embeddings": null})"), 0);
}

TEST(Config, TextConfigInheritsQuantization) {
  Json config = parse_config(
      R"({"quantization": {"bits": 4}, "tie_word_embeddings": false,
          "text_config": {"hidden_size": 64}})",
      "f"
  );
  Json text = text_config(config);
  EXPECT_EQ(text.at("hidden_size").as_int(), 64);
  EXPECT_EQ(text.at("quantization").at("bits").as_int(), 4);
  EXPECT_FALSE(text.at("tie_word_embeddings").as_bool());
  EXPECT_ERROR(text.at("vocab_size"), "text_config.vocab_size: required");
}

TEST(Config, ThinkersInheritFromTheTop) {
  Json config = parse_config(
      R"({"quantization": {"bits": 4},
          "thinker_config": {"text_config": {"hidden_size": 64}}})",
      "f"
  );
  EXPECT_EQ(text_config(config).at("quantization").at("bits").as_int(), 4);
}

TEST(Config, TiedAtTheTopWins) {
  Json config = parse_config(
      R"({"tie_word_embeddings": false,
          "text_config": {"tie_word_embeddings": true}})",
      "f"
  );
  EXPECT_FALSE(text_config(config).at("tie_word_embeddings").as_bool());
}

TEST(Config, TextModelsUnderOtherNames) {
  auto hidden = [](const char* text) {
    return text_config(parse_config(text, "f")).at("hidden_size").path();
  };
  EXPECT_EQ(
      hidden(R"({"llm_config": {"hidden_size": 1}})"), "llm_config.hidden_size"
  );
  EXPECT_EQ(
      hidden(R"({"language_config": {"hidden_size": 1}})"),
      "language_config.hidden_size"
  );
  EXPECT_EQ(
      hidden(R"({"thinker_config": {"text_config": {"hidden_size": 1}}})"),
      "thinker_config.text_config.hidden_size"
  );
  EXPECT_EQ(
      hidden(R"({"hidden_size": 1, "text_config": [], "llm_config": null})"),
      "hidden_size"
  );
}

TEST(Config, EosIdsInAllForms) {
  auto ids = [](const char* text) {
    return eos_token_ids(parse_config(text, "f"));
  };
  EXPECT_EQ(ids(R"({"eos_token_id": 2})"), std::vector<int64_t>{2});
  EXPECT_EQ(
      ids(R"({"eos_token_id": [7, "x", 9]})"), (std::vector<int64_t>{7, 9})
  );
  EXPECT_TRUE(ids(R"({"eos_token_id": null})").empty());
  EXPECT_TRUE(ids("{}").empty());
}

}  // namespace
}  // namespace mlxcel
