// Tokenizer files beside tokenizer.json. That they give the ids of the
// official libraries is tested in tests/oracle/test_tokenizer_files.py.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "mlxcel/core/base64.h"
#include "mlxcel/tokenizer/split/text_chunks.h"
#include "mlxcel/tokenizer/tokenizer.h"
#include "tests/unit/support/expect_error.h"
#include "tests/unit/support/temporary_directory.h"
#include "tests/unit/tokenizer/support/tokenizer_file.h"
#include "tests/unit/tokenizer/support/tokenizer_files.h"

namespace mlxcel::test {
namespace {

using Ids = std::vector<int32_t>;

TEST(TiktokenFile, MergesByTheRankOfWhatIsMade) {
  TemporaryDirectory directory;
  directory.write("some.tiktoken", tiktoken_ranks());
  auto tokenizer = Tokenizer::load(directory.path());
  EXPECT_EQ(tokenizer->encode("ab"), (Ids{256}));
  EXPECT_EQ(tokenizer->encode("abc"), (Ids{257}));
  EXPECT_EQ(tokenizer->encode("xbcab"), (Ids{'x', 258, 256}));
  EXPECT_EQ(tokenizer->decode(Ids{257, 0xc3, 0xa9}, false), "abcé");
}

TEST(TiktokenFile, EqualRanksMergeFromTheLeft) {
  // "aa" + "a" and "a" + "aa" make the same token.
  TemporaryDirectory directory;
  std::string ranks = tiktoken_ranks();
  ranks += encode_base64("aa") + " 259\n" + encode_base64("aaa") + " 260\n";
  directory.write("some.tiktoken", ranks);
  auto tokenizer = Tokenizer::load(directory.path());
  EXPECT_EQ(tokenizer->encode("aaaa"), (Ids{259, 259}));
  EXPECT_EQ(tokenizer->encode("aaaaa"), (Ids{259, 260}));
}

TEST(TiktokenFile, HunYuanIsTheFamilyUnlessTheClassSaysOtherwise) {
  TemporaryDirectory directory;
  directory.write("some.tiktoken", tiktoken_ranks());
  auto hunyuan = Tokenizer::load(directory.path());
  EXPECT_EQ(hunyuan->token_to_id("<|endoftext|>"), 259);
  EXPECT_EQ(hunyuan->token_to_id("<|startoftext|>"), 260);
  EXPECT_EQ(hunyuan->token_to_id("<|extra_204|>"), 259 + 209);
  directory.write(
      "tokenizer_config.json", R"({"tokenizer_class":"QWenTokenizer"})"
  );
  auto qwen = Tokenizer::load(directory.path());
  EXPECT_EQ(qwen->token_to_id("<|im_start|>"), 260);
  EXPECT_EQ(qwen->token_to_id("<imgpad>"), 259 + 216);
  EXPECT_TRUE(qwen->is_special(260));
  EXPECT_EQ(qwen->encode("ab<|im_end|>"), (Ids{256, 261}));
}

TEST(TiktokenFile, KimiNamesItsControlTokens) {
  TemporaryDirectory directory;
  directory.write("tiktoken.model", tiktoken_ranks());
  directory.write("config.json", R"({"model_type":"kimi_linear"})");
  directory.write(
      "tokenizer_config.json",
      R"({"added_tokens_decoder":{"259":{"content":"[BOS]"},
          "600":{"content":"too far"}}})"
  );
  auto tokenizer = Tokenizer::load(directory.path());
  EXPECT_EQ(tokenizer->token_to_id("[BOS]"), 259);
  EXPECT_TRUE(tokenizer->is_special(259));
  EXPECT_EQ(tokenizer->token_to_id("<|reserved_token_260|>"), 260);
  EXPECT_EQ(tokenizer->vocab_size(), 259 + 256);
  EXPECT_EQ(tokenizer->token_to_id("too far"), std::nullopt);
}

TEST(TiktokenFile, NeverAddsABos) {
  TemporaryDirectory directory;
  directory.write("some.tiktoken", tiktoken_ranks());
  directory.write(
      "tokenizer_config.json", R"({"add_bos_token":true,"bos_token":"<|bos|>"})"
  );
  auto tokenizer = Tokenizer::load(directory.path());
  EXPECT_EQ(tokenizer->encode("ab"), (Ids{256}));
  EXPECT_EQ(tokenizer->bos_id(), 261);
}

TEST(TextChunks, CutsLongTextAndLongRuns) {
  using tokenizer::cut_text;
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(cut_text("", {4, 2}), (Parts{}));
  EXPECT_EQ(cut_text("ab cd", {4, 2}), (Parts{"ab c", "d"}));
  EXPECT_EQ(cut_text("abcdéf", {100, 2}), (Parts{"ab", "cd", "éf"}));
  EXPECT_EQ(cut_text("a\x1c \tb", {100, 2}), (Parts{"a\x1c ", "\tb"}));
}

TEST(Qwen2Files, AddedTokensFollowTheVocabulary) {
  TemporaryDirectory directory;
  write_qwen2_files(
      directory,
      R"({"257":{"content":"<x>","special":true},"258":{"content":"<y>"}})"
  );
  auto tokenizer = Tokenizer::load(directory.path());
  EXPECT_EQ(tokenizer->encode("ab<x>c<y>"), (Ids{256, 257, 'c', 258}));
  EXPECT_TRUE(tokenizer->is_special(257));
  EXPECT_FALSE(tokenizer->is_special(258));
  // NFC before bytes.
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("e\u0301"), false), "é");
}

TEST(Qwen2Files, AnIdThatDoesNotFollowIsAnError) {
  TemporaryDirectory directory;
  write_qwen2_files(directory, R"({"300":{"content":"<x>"}})");
  EXPECT_ERROR(
      Tokenizer::load(directory.path()), "\"<x>\": declared as id 300"
  );
}

TEST(Qwen2Files, AddedTokensJsonHasNoFlags) {
  TemporaryDirectory directory;
  write_qwen2_files(directory, "null");
  directory.write("added_tokens.json", R"({"<x>":257})");
  auto tokenizer = Tokenizer::load(directory.path());
  EXPECT_EQ(tokenizer->encode("<x>"), (Ids{257}));
  EXPECT_FALSE(tokenizer->is_special(257));
}

using Type = tokenizer::SentencePieceFile::Type;

SentencePieceBuilder small_model(uint64_t kind) {
  SentencePieceBuilder model;
  model.model_type = kind;
  model.pieces = {
      {"<unk>", 0, Type::unknown},
      {"<s>", 0, Type::control},
      {"</s>", 0, Type::control},
      {"▁", -5, Type::normal},
      {"a", -2, Type::normal},
      {"b", -3, Type::normal},
      {"ab", -1, Type::normal},
      {"ba", -0.5, Type::normal}};
  return model;
}

std::shared_ptr<const Tokenizer> load_model(
    const SentencePieceBuilder& model, const std::string& config = "{}"
) {
  TemporaryDirectory directory;
  directory.write("tokenizer.model", model.bytes());
  directory.write("tokenizer_config.json", config);
  return Tokenizer::load(directory.path());
}

TEST(SentencePieceModel, MergesByScore) {
  auto tokenizer = load_model(small_model(2));
  EXPECT_EQ(tokenizer->encode("aba"), (Ids{3, 4, 7}));
  EXPECT_EQ(tokenizer->encode("abab"), (Ids{3, 4, 7, 5}));
}

TEST(SentencePieceModel, TakesTheLikeliestPieces) {
  auto tokenizer = load_model(small_model(1));
  EXPECT_EQ(tokenizer->encode("aba"), (Ids{3, 4, 7}));
  EXPECT_EQ(tokenizer->encode("abab"), (Ids{3, 6, 6}));
}

TEST(SentencePieceModel, UnknownTextIsOneTokenAndASurface) {
  auto tokenizer = load_model(small_model(1));
  EXPECT_EQ(tokenizer->encode("axyz"), (Ids{3, 4, 0}));
  EXPECT_EQ(tokenizer->decode(Ids{3, 4, 0}, false), "a ⁇ ");
}

TEST(SentencePieceModel, TokensWithTheirPlaces) {
  SentencePieceBuilder model = small_model(2);
  auto tokenizer = load_model(model);
  Encoding encoding = tokenizer->encode_with_offsets("ba  xé");
  EXPECT_EQ(encoding.ids, tokenizer->encode("ba  xé"));
  EXPECT_EQ(encoding.ids, (Ids{3, 7, 3, 0}));
  EXPECT_EQ(encoding.offsets[1].begin, 0u);
  EXPECT_EQ(encoding.offsets[1].end, 2u);
  EXPECT_EQ(encoding.offsets[3].begin, 4u);
  EXPECT_EQ(encoding.offsets[3].end, 7u);
  model.byte_fallback = true;
  for (unsigned b = 0; b < 256; ++b) {
    model.pieces.push_back({fmt::format("<0x{:02X}>", b), 0, Type::byte});
  }
  tokenizer = load_model(model);
  encoding = tokenizer->encode_with_offsets("é");
  EXPECT_EQ(encoding.ids, (Ids{3, 8 + 0xc3, 8 + 0xa9}));
  EXPECT_EQ(encoding.offsets[1].end, 2u);
  EXPECT_EQ(encoding.offsets[2].begin, 0u);
}

TEST(SentencePieceModel, ControlPiecesAreNotFoundInText) {
  auto tokenizer = load_model(small_model(1));
  EXPECT_EQ(tokenizer->encode("<s>").front(), 3);
  EXPECT_TRUE(tokenizer->is_special(1));
  EXPECT_EQ(tokenizer->decode(Ids{1, 3, 4, 2}, true), "a");
  EXPECT_EQ(tokenizer->decode(Ids{1, 3, 4, 2}, false), "<s> a</s>");
  EXPECT_EQ(tokenizer->token_to_id("<s>"), 1);
}

TEST(SentencePieceModel, ConfigurationAddsBosEosAndTokens) {
  auto tokenizer = load_model(
      small_model(1),
      R"({"add_bos_token":true,"add_eos_token":true,"added_tokens_decoder":{
          "1":{"content":"<s>","special":true},
          "9":{"content":"<x>"}}})"
  );
  EXPECT_EQ(tokenizer->encode("a<s>b<x>"), (Ids{1, 3, 4, 1, 3, 5, 9, 2}));
  EXPECT_EQ(tokenizer->encode(""), (Ids{1, 2}));
  EXPECT_EQ(tokenizer->added_bos_id(), 1);
  EXPECT_EQ(tokenizer->decode(Ids{1, 4, 9}, true), "a<x>");
  // By default none.
  EXPECT_EQ(
      load_model(small_model(1), R"({"bos_token":"<s>"})")->encode("a"),
      (Ids{3, 4})
  );
}

TEST(SentencePieceModel, PrefixOfTheConfiguration) {
  EXPECT_EQ(
      load_model(small_model(1), R"({"add_prefix_space":false})")->encode("a"),
      (Ids{4})
  );
  // Only the first part of a text gets one.
  auto tokenizer = load_model(
      small_model(1),
      R"({"legacy":false,"added_tokens_decoder":{"9":{"content":"<x>"}}})"
  );
  EXPECT_EQ(tokenizer->encode("a<x>b"), (Ids{3, 4, 9, 5}));
}

TEST(SentencePieceModel, ABosThatIsNoPieceIsAnError) {
  SentencePieceBuilder model = small_model(1);
  model.pieces[1].text = "<bos>";
  EXPECT_ERROR(
      load_model(model, R"({"add_bos_token":true})"),
      "\"<s>\" is to be added to each text, but is no piece"
  );
  EXPECT_EQ(
      load_model(model, R"({"add_bos_token":true,"bos_token":"<bos>"})")
          ->encode("a"),
      (Ids{1, 3, 4})
  );
}

TEST(SentencePieceModel, EffortIsLimited) {
  std::string text(100000, 'a');
  std::string piece = std::string(7000, 'a') + "b";
  for (uint64_t kind : {1, 2}) {
    SentencePieceBuilder model = small_model(kind);
    model.pieces.push_back({piece, -1, Type::user_defined});
    EXPECT_ERROR(load_model(model)->encode(text), "takes too long");
  }
  SentencePieceBuilder model = small_model(1);
  model.pieces.push_back({piece, -1, Type::normal});
  EXPECT_ERROR(load_model(model)->encode(text), "takes too long");
}

TEST(PlamoFile, CheapestPiecesAndBytes) {
  TemporaryDirectory directory;
  std::string rows = plamo_rows() +
                     R"(["a", -1, "NORMAL"]
["b", -1, "NORMAL"]
["ab", -2, "NORMAL"]
["bc", -9, "NORMAL"])";
  directory.write("tokenizer.jsonl", rows);
  directory.write(
      "tokenizer_config.json",
      R"({"add_bos_token":true,"bos_token":"<|plamo:bos|>"})"
  );
  auto tokenizer = Tokenizer::load(directory.path());
  // Of equal ways the one with the longest first piece.
  EXPECT_EQ(tokenizer->encode("ab"), (Ids{1, 262}));
  EXPECT_EQ(tokenizer->encode("abc"), (Ids{1, 260, 263}));
  EXPECT_EQ(tokenizer->encode("aé"), (Ids{1, 260, 4 + 0xc3, 4 + 0xa9}));
  EXPECT_EQ(tokenizer->encode("<|plamo:eos|>"), (Ids{1, 2}));
  EXPECT_TRUE(tokenizer->is_special(2));
  EXPECT_EQ(tokenizer->decode(Ids{1, 4 + 0xc3, 4 + 0xa9, 260}, true), "éa");
}

TEST(PlamoFile, EffortIsLimited) {
  TemporaryDirectory directory;
  std::string text(100000, 'a');
  directory.write(
      "tokenizer.jsonl",
      plamo_rows() + fmt::format("[\"{}b\", -1, \"NORMAL\"]", text)
  );
  EXPECT_ERROR(
      Tokenizer::load(directory.path())->encode(text), "takes too long"
  );
}

TEST(PlamoFile, LongRunsStandByThemselves) {
  TemporaryDirectory directory;
  std::string rows = plamo_rows() +
                     R"(["a", -1, "NORMAL"]
["b", -1, "NORMAL"]
["ab", -1, "NORMAL"]
["aaa", -1, "NORMAL"]
["  b", -1, "NORMAL"])";
  directory.write("tokenizer.jsonl", rows);
  auto load = [&](const std::string& config) {
    directory.write("tokenizer_config.json", config);
    return Tokenizer::load(directory.path());
  };
  EXPECT_EQ(load("{}")->encode("aaaab"), (Ids{263, 262}));
  EXPECT_EQ(
      load(R"({"break_around_repeated_chars_threshold":4})")->encode("aaaab"),
      (Ids{263, 260, 261})
  );
  auto spaces = load(R"({"break_around_consecutive_spaces_threshold":2})");
  EXPECT_EQ(spaces->encode("aaaab"), (Ids{263, 262}));
  EXPECT_EQ(spaces->encode("  b"), (Ids{4 + ' ', 4 + ' ', 261}));
  EXPECT_ERROR(
      load(R"({"break_around_repeated_chars_threshold":0})"),
      "break_around_repeated_chars_threshold"
  );
}

constexpr const char* bert_vocab =
    "[PAD]\n[UNK]\n[CLS]\r\n[SEP]\n[MASK]\n\nhe\n##llo\nHe\ncafé\ncafe\n中";

TEST(BertFiles, LowerCaseWithoutAccents) {
  TemporaryDirectory directory;
  directory.write("vocab.txt", bert_vocab);
  auto tokenizer = Tokenizer::load(directory.path());
  EXPECT_EQ(tokenizer->encode("HELLO"), (Ids{2, 6, 7, 3}));
  EXPECT_EQ(tokenizer->encode("Café[MASK] x"), (Ids{2, 10, 4, 1, 3}));
  EXPECT_EQ(tokenizer->encode("he中he"), (Ids{2, 6, 11, 6, 3}));
  EXPECT_EQ(tokenizer->decode(Ids{2, 6, 7, 6, 3}, true), "hello he");
  EXPECT_TRUE(tokenizer->is_special(4));
}

TEST(BertFiles, OptionsOfTheConfiguration) {
  TemporaryDirectory directory;
  directory.write("vocab.txt", bert_vocab);
  auto load = [&](const std::string& config) {
    directory.write("tokenizer_config.json", config);
    return Tokenizer::load(directory.path());
  };
  EXPECT_EQ(load(R"({"do_lower_case":false})")->encode("He"), (Ids{2, 8, 3}));
  EXPECT_EQ(load(R"({"strip_accents":false})")->encode("CAFÉ"), (Ids{2, 9, 3}));
  EXPECT_EQ(
      load(R"({"tokenize_chinese_chars":false})")->encode("he中"),
      (Ids{2, 1, 3})
  );
  EXPECT_EQ(load(R"({"never_split":["[MASK]"]})")->encode(""), (Ids{2, 3}));
  EXPECT_ERROR(load(R"({"never_split":["he"]})"), "never_split");
  EXPECT_ERROR(load(R"({"do_basic_tokenize":false})"), "do_basic_tokenize");
  EXPECT_ERROR(load(R"({"cls_token":"<s>"})"), "there is no token \"<s>\"");
  EXPECT_ERROR(
      load(R"({"tokenizer_class":"MPNetTokenizer"})"),
      "the class is \"MPNetTokenizer\""
  );
}

TEST(TokenizerDirectory, OtherClassesDoNotGetTheRulesOfQwen2) {
  TemporaryDirectory directory;
  write_qwen2_files(directory, "{}");
  directory.write(
      "tokenizer_config.json", R"({"tokenizer_class":"GPT2Tokenizer"})"
  );
  EXPECT_ERROR(
      Tokenizer::load(directory.path()), "the class is \"GPT2Tokenizer\""
  );
}

TEST(TokenizerDirectory, TokenizerJsonComesFirst) {
  TemporaryDirectory directory;
  TokenizerFile file;
  file.model = bpe_model({"a", "b"}, {});
  directory.write("tokenizer.json", file.text());
  directory.write("some.tiktoken", "broken");
  EXPECT_EQ(Tokenizer::load(directory.path())->encode("ab"), (Ids{0, 1}));
}

TEST(TokenizerDirectory, MarkersOfDiffusionGemmaStayInTheText) {
  TemporaryDirectory directory;
  TokenizerFile file;
  file.model = bpe_model({"a", "b"}, {});
  file.decoder = R"({"type":"Fuse"})";
  file.added_tokens =
      json_list({added_token("<|channel>"), added_token("<eos>")});
  directory.write("tokenizer.json", file.text());
  auto plain = Tokenizer::load(directory.path());
  EXPECT_EQ(plain->decode(Ids{2, 0, 3}, true), "a");
  directory.write("config.json", R"({"model_type":"diffusion_gemma"})");
  auto diffusion = Tokenizer::load(directory.path());
  EXPECT_EQ(diffusion->decode(Ids{2, 0, 3}, true), "<|channel>a");
  EXPECT_EQ(diffusion->encode("<|channel>a"), (Ids{2, 0}));
}

TEST(TokenizerDirectory, MoondreamSaysWhichTokenizerItNeeds) {
  TemporaryDirectory directory;
  directory.write("config.json", R"({"model_type":"moondream1"})");
  TokenizerFile file;
  file.model = bpe_model({"a", "b"}, {});
  directory.write("tokenizer.json", file.text());
  directory.write("moondream.py", "from_pretrained(\"vikhyatk/moondream2\")");
  EXPECT_EQ(Tokenizer::load(directory.path())->encode("a"), (Ids{0}));
  directory.write("moondream.py", "from_pretrained(\"moondream/starmie-v1\")");
  EXPECT_ERROR(
      Tokenizer::load(directory.path()),
      "download tokenizer.json of moondream/starmie-v1 and put it into"
  );
  file.added_tokens = json_list({added_token("<|md_reserved_0|>")});
  directory.write("tokenizer.json", file.text());
  EXPECT_EQ(Tokenizer::load(directory.path())->encode("a"), (Ids{0}));
}

TEST(TokenizerDirectory, Moondream3NamesItsTokenizer) {
  TemporaryDirectory directory;
  directory.write("config.json", R"({"model_type":"moondream3"})");
  EXPECT_ERROR(Tokenizer::load(directory.path()), "moondream/starmie-v1");
}

}  // namespace
}  // namespace mlxcel::test
