#include "mlxcel/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/support/expect_error.h"
#include "tests/unit/support/temporary_directory.h"
#include "tests/unit/tokenizer/support/tokenizer_file.h"

namespace mlxcel::test {
namespace {

using Ids = std::vector<int32_t>;

/// Letters a and b are 0 and 1, <bos> and <eos> 2 and 3.
TokenizerFile small_file() {
  TokenizerFile file;
  file.model = bpe_model({"a", "b"}, {});
  file.added_tokens = json_list({added_token("<bos>"), added_token("<eos>")});
  file.decoder = R"({"type":"Fuse"})";
  return file;
}

std::string bos_template() {
  return R"({"type":"TemplateProcessing","single":[
      {"SpecialToken":{"id":"B","type_id":0}},
      {"Sequence":{"id":"A","type_id":0}}],"pair":[],
      "special_tokens":{"B":{"id":"B","ids":[2],"tokens":["<bos>"]}}})";
}

std::shared_ptr<const Tokenizer> loaded(
    const TokenizerFile& file, const std::string& config
) {
  TemporaryDirectory directory;
  directory.write("tokenizer.json", file.text());
  if (!config.empty()) {
    directory.write("tokenizer_config.json", config);
  }
  return Tokenizer::load(directory.path());
}

TEST(Tokenizer, TemplateIsAddedOnRequest) {
  TokenizerFile file = small_file();
  file.post_processor = R"({"type":"Sequence","processors":[
      {"type":"ByteLevel"},)" +
                        bos_template() + "]}";
  auto tokenizer = file.load();
  EXPECT_EQ(tokenizer->encode("ab"), (Ids{2, 0, 1}));
  EXPECT_EQ(tokenizer->encode(""), (Ids{2}));
  EncodeOptions without;
  without.add_special = false;
  EXPECT_EQ(tokenizer->encode("ab", without), (Ids{0, 1}));
  EXPECT_EQ(tokenizer->added_bos_id(), 2);
}

TEST(Tokenizer, TemplateProblemsAreNamed) {
  TokenizerFile file = small_file();
  file.post_processor = R"({"type":"TemplateProcessing","single":[
      {"Sequence":{"id":"B"}}],"special_tokens":{}})";
  EXPECT_ERROR(file.load(), "a single text is sequence A");
  file.post_processor = R"({"type":"TemplateProcessing","single":[
      {"SpecialToken":{"id":"X"}}],"special_tokens":{}})";
  EXPECT_ERROR(file.load(), "special_tokens");
  file.post_processor = R"({"type":"Novel"})";
  EXPECT_ERROR(
      file.load(), "the post-processor type \"Novel\" is not supported"
  );
}

TEST(Tokenizer, FactsOfTheConfig) {
  auto tokenizer =
      loaded(small_file(), R"({"bos_token":{"content":"<bos>","lstrip":false},
                        "eos_token":"<eos>","unk_token":null})");
  EXPECT_EQ(tokenizer->bos_token(), "<bos>");
  EXPECT_EQ(tokenizer->bos_id(), 2);
  EXPECT_EQ(tokenizer->eos_token(), "<eos>");
  EXPECT_EQ(tokenizer->eos_id(), 3);
  EXPECT_EQ(tokenizer->unk_token(), "");
  EXPECT_EQ(tokenizer->pad_id(), std::nullopt);
  EXPECT_EQ(tokenizer->added_bos_id(), std::nullopt);
  EXPECT_EQ(tokenizer->encode("a"), (Ids{0}));
}

TEST(Tokenizer, LostBosIsRepaired) {
  std::string bos = R"("bos_token":"<bos>")";
  auto ids = [&](const TokenizerFile& file, const std::string& rest) {
    std::string config = "{";
    config.append(bos).append(rest).append("}");
    return loaded(file, config)->encode("a");
  };
  EXPECT_EQ(ids(small_file(), ""), (Ids{0}));
  EXPECT_EQ(ids(small_file(), R"(,"add_bos_token":true)"), (Ids{2, 0}));
  std::string gemma = R"(,"tokenizer_class":"GemmaTokenizerFast")";
  EXPECT_EQ(ids(small_file(), gemma), (Ids{2, 0}));
  EXPECT_EQ(ids(small_file(), gemma + R"(,"add_bos_token":false)"), (Ids{0}));
  // One that is there already is not given twice.
  TokenizerFile file = small_file();
  file.post_processor = bos_template();
  EXPECT_EQ(ids(file, R"(,"add_bos_token":true)"), (Ids{2, 0}));
  // A BOS without an id cannot be put in front.
  EXPECT_EQ(
      loaded(small_file(), R"({"bos_token":"<none>","add_bos_token":true})")
          ->encode("a"),
      (Ids{0})
  );
}

TEST(Tokenizer, RenderedPromptsGetOneBos) {
  TokenizerFile file = small_file();
  file.post_processor = bos_template();
  auto tokenizer = loaded(file, R"({"bos_token":"<bos>"})");
  EXPECT_EQ(encode_rendered_prompt(*tokenizer, "ab"), (Ids{2, 0, 1}));
  EXPECT_EQ(encode_rendered_prompt(*tokenizer, "<bos>ab"), (Ids{2, 0, 1}));
  // <s> is no token here, but a BOS all the same.
  EXPECT_EQ(encode_rendered_prompt(*tokenizer, "<s>a"), (Ids{0}));
  EXPECT_EQ(encode_rendered_prompt(*tokenizer, ""), (Ids{2}));
}

TEST(Tokenizer, DecodeSkipsWhatItShould) {
  auto tokenizer = small_file().load();
  Ids ids = {2, 0, 99, -1, 1, 3};
  EXPECT_EQ(tokenizer->decode(ids, false), "<bos>ab<eos>");
  EXPECT_EQ(tokenizer->decode(ids, true), "ab");
  EXPECT_EQ(tokenizer->id_to_token(99), "");
}

TEST(Tokenizer, MissingByteLevelDecoderIsPutIn) {
  TokenizerFile file;
  file.model = bpe_model({"Ġ", "a"}, {});
  file.pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":false})";
  EXPECT_EQ(file.load()->decode(Ids{0, 1}, false), " a");
}

TEST(Tokenizer, CharacterOutsideOfTheAlphabetIsATokenLikeOthers) {
  TokenizerFile file = small_file();
  file.model = bpe_model({"a", "–"}, {});
  file.decoder = R"({"type":"ByteLevel"})";
  EXPECT_EQ(file.load()->decode(Ids{0, 1}, false), "a–");
}

TEST(Tokenizer, TextMustBeUtf8) {
  auto tokenizer = small_file().load();
  EXPECT_ERROR(tokenizer->encode("a\xff"), "not valid UTF-8 at byte 1");
  EXPECT_EQ(tokenizer->encode(std::string("a\0b", 3)), (Ids{0, 1}));
}

TEST(Tokenizer, DirectoryWithoutOne) {
  TemporaryDirectory directory;
  EXPECT_ERROR(
      Tokenizer::load(directory.path()), "tried tokenizer.json, tokenizer.model"
  );
  EXPECT_ERROR(Tokenizer::load(directory / "missing"), "no tokenizer found");
}

TEST(Tokenizer, IdsMayLeaveGaps) {
  TokenizerFile file = small_file();
  file.model = R"({"type":"BPE","vocab":{"a":0,"b":10},"merges":[]})";
  auto tokenizer = file.load();
  EXPECT_EQ(tokenizer->encode("ab<bos>"), (Ids{0, 10, 2}));
  EXPECT_EQ(tokenizer->vocab_size(), 11u);
  EXPECT_EQ(tokenizer->id_to_token(5), "");
}

TEST(Tokenizer, ThreadsShareOne) {
  TokenizerFile file;
  file.model = bpe_model({"a", "b", "ab"}, {"a b"});
  file.pre_tokenizer = R"({"type":"WhitespaceSplit"})";
  auto tokenizer = file.load();
  std::string text;
  Ids expected;
  for (int i = 0; i < 2000; ++i) {
    text += i % 3 == 0 ? "ab " : "ba ";
    expected.insert(expected.end(), {i % 3 == 0 ? 2 : 1});
    if (i % 3 != 0) {
      expected.push_back(0);
    }
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(tokenizer->encode(text), expected);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace mlxcel::test
