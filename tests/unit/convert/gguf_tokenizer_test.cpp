#include "mlxcel/weights/convert/gguf/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/unit/convert/gguf_builder.h"
#include "tests/unit/support/expect_error.h"
#include "tests/unit/support/temporary_directory.h"

namespace mlxcel::convert {

namespace {

using nlohmann::json;

class GgufTokenizerTest : public ::testing::Test {
 protected:
  const GgufTokenizer& read(GgufBuilder builder, int64_t vocab = 1000) {
    gguf_ = std::make_unique<GgufFile>(
        GgufFile::open(directory_.write("m.gguf", builder.build()))
    );
    tokenizer_ = read_tokenizer(*gguf_, vocab);
    return tokenizer_;
  }
  json text(const GgufBuilder& builder) {
    read(builder);
    return json::parse(tokenizer_json(*gguf_, tokenizer_));
  }

  TemporaryDirectory directory_;
  std::unique_ptr<GgufFile> gguf_;
  GgufTokenizer tokenizer_;
};

GgufBuilder byte_level() {
  GgufBuilder builder;
  put_tiny_tokenizer(builder);
  return builder;
}

// Scores in the order of the merges: "ab" before "\u2581a" before "\u2581ab".
GgufBuilder sentencepiece() {
  GgufBuilder builder;
  builder.put("tokenizer.ggml.model", "llama");
  builder.put("tokenizer.ggml.pre", "default");
  builder.put(
      "tokenizer.ggml.tokens",
      std::vector<std::string>{
          "<unk>",
          "<s>",
          "</s>",
          "<0x0A>",
          "ab",
          "\u2581a",
          "\u2581ab",
          "\u2581",
          "a",
          "b",
          "<end_of_turn>",
          "  "}
  );
  builder.put_array<float>(
      "tokenizer.ggml.scores",
      GgufType::float32,
      {0, 0, 0, 0, 0, -1, -2, -3, -4, -5, -1000, -1000}
  );
  builder.put_array<int32_t>(
      "tokenizer.ggml.token_type",
      GgufType::int32,
      {2, 3, 3, 6, 1, 1, 1, 1, 1, 1, 3, 4}
  );
  return builder;
}

}  // namespace

TEST_F(GgufTokenizerTest, ByteLevelTokenizer) {
  json t = text(byte_level());
  EXPECT_EQ(t["model"]["type"], "BPE");
  EXPECT_EQ(t["model"]["vocab"]["abc"], 10);
  EXPECT_EQ(t["model"]["vocab"]["<|im_end|>"], 2);
  EXPECT_FALSE(t["model"]["vocab"].contains("[PAD11]"));
  EXPECT_EQ(
      t["model"]["merges"], json::parse(R"([["a","b"],["Ġ","a"],["ab","c"]])")
  );
  EXPECT_EQ(t["model"]["byte_fallback"], false);
  EXPECT_EQ(t["added_tokens"].size(), 3u);
  EXPECT_EQ(t["added_tokens"][2]["id"], 2);
  EXPECT_EQ(t["added_tokens"][2]["special"], true);
  EXPECT_EQ(
      t["pre_tokenizer"],
      json::parse(R"({"type":"Sequence","pretokenizers":[)"
                  R"({"type":"Digits","individual_digits":true},)"
                  R"({"type":"ByteLevel","add_prefix_space":false,)"
                  R"("trim_offsets":true,"use_regex":true}]})")
  );
  EXPECT_TRUE(t["post_processor"].is_null());
  EXPECT_EQ(t["decoder"]["type"], "ByteLevel");
}

TEST_F(GgufTokenizerTest, ConfigsNameTheSpecialTokens) {
  const GgufTokenizer& tokenizer = read(byte_level());
  EXPECT_EQ(
      json(tokenizer_config(tokenizer, 128)),
      json::parse(
          R"({"tokenizer_class":"PreTrainedTokenizerFast",)"
          R"("bos_token":"<|im_start|>","eos_token":"<|im_end|>",)"
          R"("add_bos_token":false,"add_eos_token":false,)"
          R"("clean_up_tokenization_spaces":false,"model_max_length":128,)"
          R"("chat_template":"{{ messages[0]['content'] }}"})"
      )
  );
  // The end of the text ends a generation too.
  EXPECT_EQ(
      json(generation_config(tokenizer)),
      json::parse(R"({"bos_token_id":1,"eos_token_id":[2,0]})")
  );
}

TEST_F(GgufTokenizerTest, WithoutSpecialTokensTheConfigsAreStillObjects) {
  GgufBuilder builder = byte_level();
  builder.replace(
      "tokenizer.ggml.tokens",
      std::vector<std::string>{
          "A", "B", "C", "a", "b", "c", "d", "e", "ab", "f", "abc", "g"}
  );
  builder.replace("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  builder.remove("tokenizer.ggml.token_type");
  builder.remove("tokenizer.ggml.bos_token_id");
  builder.remove("tokenizer.ggml.eos_token_id");
  EXPECT_EQ(generation_config(read(builder)).dump(), "{}");
  EXPECT_FALSE(tokenizer_config(tokenizer_, 8).contains("eos_token"));
  EXPECT_EQ(text(builder)["added_tokens"].dump(), "[]");
}

TEST_F(GgufTokenizerTest, BosIsAddedWhereThePreTokenizerOrTheFileSaysSo) {
  GgufBuilder llama3 = byte_level();
  llama3.replace("tokenizer.ggml.pre", "llama-bpe");
  json t = text(llama3);
  EXPECT_EQ(t["model"]["ignore_merges"], true);
  EXPECT_EQ(
      t["post_processor"],
      json::parse(R"({"type":"TemplateProcessing","single":[)"
                  R"({"SpecialToken":{"id":"<|im_start|>","type_id":0}},)"
                  R"({"Sequence":{"id":"A","type_id":0}}],"pair":[)"
                  R"({"SpecialToken":{"id":"<|im_start|>","type_id":0}},)"
                  R"({"Sequence":{"id":"A","type_id":0}},)"
                  R"({"SpecialToken":{"id":"<|im_start|>","type_id":1}},)"
                  R"({"Sequence":{"id":"B","type_id":1}}],"special_tokens":)"
                  R"({"<|im_start|>":{"id":"<|im_start|>","ids":[1],)"
                  R"("tokens":["<|im_start|>"]}}})")
  );
  llama3.put("tokenizer.ggml.add_bos_token", false);
  EXPECT_TRUE(text(llama3)["post_processor"].is_null());

  GgufBuilder both = byte_level();
  both.put("tokenizer.ggml.add_bos_token", true);
  both.put("tokenizer.ggml.add_eos_token", true);
  EXPECT_EQ(text(both)["post_processor"]["single"].size(), 3u);
  both.remove("tokenizer.ggml.bos_token_id");
  EXPECT_ERROR(read(both), "tokenizer.ggml.bos_token_id: missing");
}

TEST_F(GgufTokenizerTest, PreTokenizers) {
  for (const char* name :
       {"gpt-2",
        "smollm",
        "llama-bpe",
        "smaug-bpe",
        "qwen2",
        "deepseek-r1-qwen",
        "tekken",
        "seed-coder",
        "deepseek-coder",
        "default"}) {
    auto pre = pre_tokenizer(name);
    ASSERT_TRUE(pre.has_value()) << name;
    json steps = json::parse(pre->json)["pretokenizers"];
    EXPECT_EQ(steps.back()["type"], "ByteLevel") << name;
  }
  EXPECT_EQ(pre_tokenizer("qwen2")->normalizer, R"({"type":"NFC"})");
  EXPECT_EQ(pre_tokenizer("smollm")->normalizer, "null");
  EXPECT_EQ(
      json::parse(pre_tokenizer("default")->json)["pretokenizers"].size(), 5u
  );
  GgufBuilder unknown = byte_level();
  unknown.replace("tokenizer.ggml.pre", "made-up");
  EXPECT_ERROR(read(unknown), "tokenizer.ggml.pre: \"made-up\" is not a known");
  unknown.remove("tokenizer.ggml.pre");
  EXPECT_ERROR(read(unknown), "tokenizer.ggml.pre: missing");
}

TEST_F(GgufTokenizerTest, SentencePieceTokenizer) {
  json t = text(sentencepiece());
  EXPECT_EQ(t["model"]["byte_fallback"], true);
  EXPECT_EQ(t["model"]["fuse_unk"], true);
  EXPECT_EQ(t["model"]["unk_token"], "<unk>");
  EXPECT_EQ(t["model"]["vocab"]["  "], 11);
  EXPECT_EQ(
      t["model"]["merges"],
      json::parse("[[\"a\",\"b\"],[\"\u2581\",\"a\"],[\"\u2581a\",\"b\"],"
                  "[\"\u2581\",\"ab\"]]")
  );
  EXPECT_EQ(
      t["normalizer"]["normalizers"][0],
      json::parse("{\"type\":\"Prepend\",\"prepend\":\"\u2581\"}")
  );
  EXPECT_EQ(t["decoder"]["decoders"].size(), 4u);
  EXPECT_EQ(t["post_processor"]["single"][0]["SpecialToken"]["id"], "<s>");
  json added = t["added_tokens"];
  ASSERT_EQ(added.size(), 5u);
  EXPECT_EQ(added[3]["content"], "<end_of_turn>");
  EXPECT_EQ(added[3]["special"], true);
  EXPECT_EQ(added[4]["content"], "  ");
  EXPECT_EQ(added[4]["special"], false);
  // Defaults, and the turn's end as a second stop.
  EXPECT_EQ(tokenizer_.eos, 2);
  EXPECT_EQ(tokenizer_.stops, (std::vector<int64_t>{2, 10}));
}

TEST_F(GgufTokenizerTest, SentencePieceWithoutSpacePrefix) {
  GgufBuilder gemma = sentencepiece();
  gemma.put("tokenizer.ggml.add_space_prefix", false);
  json t = text(gemma);
  EXPECT_EQ(t["normalizer"]["type"], "Replace");
  EXPECT_EQ(t["decoder"]["decoders"].size(), 3u);
}

// Files made from a tokenizer.json hold the same score for every token.
TEST_F(GgufTokenizerTest, EqualScoresMergeInTheOrderOfTheTokens) {
  GgufBuilder builder = sentencepiece();
  builder.remove("tokenizer.ggml.scores");
  builder.put_array<float>(
      "tokenizer.ggml.scores",
      GgufType::float32,
      std::vector<float>(12, -1000.0f)
  );
  EXPECT_EQ(text(builder)["model"]["merges"][0], json::parse(R"(["a","b"])"));
}

// GGUF marks the starts of words, vocab.txt what continues them.
TEST_F(GgufTokenizerTest, WordPieces) {
  GgufBuilder builder;
  builder.put("tokenizer.ggml.model", "bert");
  builder.put(
      "tokenizer.ggml.tokens",
      std::vector<std::string>{
          "[PAD]", "[UNK]", "[CLS]", "[SEP]", "\u2581he", "llo"}
  );
  builder.put_array<int32_t>(
      "tokenizer.ggml.token_type", GgufType::int32, {3, 3, 3, 3, 1, 1}
  );
  builder.put("tokenizer.ggml.unknown_token_id", uint32_t{1});
  builder.put("tokenizer.ggml.cls_token_id", uint32_t{2});
  builder.put("tokenizer.ggml.seperator_token_id", uint32_t{3});
  json t = text(builder);
  EXPECT_EQ(t["model"]["type"], "WordPiece");
  EXPECT_EQ(t["model"]["vocab"]["he"], 4);
  EXPECT_EQ(t["model"]["vocab"]["##llo"], 5);
  EXPECT_EQ(t["model"]["unk_token"], "[UNK]");
  EXPECT_EQ(t["normalizer"]["lowercase"], true);
  EXPECT_EQ(t["post_processor"]["single"].size(), 3u);
  EXPECT_EQ(t["post_processor"]["pair"].size(), 5u);
  EXPECT_EQ(tokenizer_config(tokenizer_, 512)["cls_token"], "[CLS]");
}

TEST_F(GgufTokenizerTest, SpacedBpeKeepsItsMerges) {
  GgufBuilder builder;
  builder.put("tokenizer.ggml.model", "gemma4");
  builder.put(
      "tokenizer.ggml.tokens",
      std::vector<std::string>{"<pad>", "<unk>", "<bos>", "a", "b", "ab"}
  );
  builder.put("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  builder.put("tokenizer.ggml.unknown_token_id", uint32_t{1});
  builder.put("tokenizer.ggml.bos_token_id", uint32_t{2});
  json t = text(builder);
  EXPECT_EQ(t["model"]["merges"][0], json::parse(R"(["a","b"])"));
  EXPECT_EQ(t["normalizer"]["type"], "Replace");
  EXPECT_EQ(t["post_processor"]["single"].size(), 2u);
}

TEST_F(GgufTokenizerTest, FaultsAreNamed) {
  GgufBuilder model = byte_level();
  model.replace("tokenizer.ggml.model", "rwkv");
  EXPECT_ERROR(read(model), "tokenizer.ggml.model: \"rwkv\" is not supported");

  GgufBuilder none = byte_level();
  none.remove("tokenizer.ggml.tokens");
  EXPECT_ERROR(read(none), "tokenizer.ggml.tokens: missing");
  EXPECT_ERROR(read(byte_level(), 11), "tokenizer.ggml.tokens: 12 tokens, but");

  GgufBuilder merges = byte_level();
  merges.remove("tokenizer.ggml.merges");
  EXPECT_ERROR(read(merges), "tokenizer.ggml.merges: missing");
  for (const char* bad : {"a x", "ab", "a ", " a", "b c", ""}) {
    GgufBuilder builder = byte_level();
    builder.replace(
        "tokenizer.ggml.merges", std::vector<std::string>{"a b", bad}
    );
    EXPECT_ERROR(text(builder), "tokenizer.ggml.merges[1]: ");
  }

  struct Texts {
    std::vector<std::string> tokens;
    const char* message;
  };
  for (const Texts& c : std::vector<Texts>{
           {{"a", "b", "a"}, "tokens[2]: \"a\" occurs twice"},
           {{"a", "\xff", "b"}, "tokens[1]: not UTF-8"},
           {{"a", "\xed\xa0\x80", "b"}, "tokens[1]: not UTF-8"},
           {{"a", "b"}, "token_type: 12 entries for 2 tokens"},
       }) {
    GgufBuilder builder = byte_level();
    builder.replace("tokenizer.ggml.tokens", c.tokens);
    if (c.tokens.size() == 3) {
      builder.remove("tokenizer.ggml.token_type");
    }
    EXPECT_ERROR(read(builder), c.message);
  }

  for (const char* name : {"bos", "eos", "eot", "padding", "unknown"}) {
    std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
    GgufBuilder builder = byte_level();
    builder.replace(key, uint32_t{12});
    EXPECT_ERROR(read(builder), key + ": expected 0 to 11, got 12");
  }

  GgufBuilder types = byte_level();
  types.remove("tokenizer.ggml.token_type");
  types.put_array<int32_t>(
      "tokenizer.ggml.token_type",
      GgufType::int32,
      {3, 3, 3, 1, 1, 7, 1, 1, 1, 1, 1, 5}
  );
  EXPECT_ERROR(read(types), "token_type[5]: expected 1 to 6, got 7");

  GgufBuilder scores = sentencepiece();
  scores.remove("tokenizer.ggml.scores");
  EXPECT_ERROR(read(scores), "tokenizer.ggml.scores: 0 scores for 12 tokens");
  std::vector<float> values(12, 0.0f);
  values[4] = std::nanf("");
  scores.put_array("tokenizer.ggml.scores", GgufType::float32, values);
  EXPECT_ERROR(read(scores), "tokenizer.ggml.scores[4]: not finite");

  GgufBuilder chat = byte_level();
  chat.replace("tokenizer.chat_template", "\xc3");
  EXPECT_ERROR(read(chat), "tokenizer.chat_template: not UTF-8");
}

TEST_F(GgufTokenizerTest, QuotesAndControlCharactersAreEscaped) {
  GgufBuilder builder = byte_level();
  builder.replace(
      "tokenizer.ggml.tokens",
      std::vector<std::string>{
          "<|endoftext|>",
          "<|im_start|>",
          "<|im_end|>",
          "a",
          "b",
          "c",
          "\"\\",
          std::string("\x01\n\0", 3),
          "ab",
          "",
          "abc",
          "\U0001f600"}
  );
  builder.replace("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  json vocab = text(builder)["model"]["vocab"];
  EXPECT_EQ(vocab["\"\\"], 6);
  EXPECT_EQ(vocab[std::string("\x01\n\0", 3)], 7);
  EXPECT_EQ(vocab["[EMPTY_9]"], 9);
  EXPECT_EQ(vocab["\U0001f600"], 11);
}

}  // namespace mlxcel::convert
