// Tokenizer files beside tokenizer.json from strangers.

#include <gtest/gtest.h>

#include "mlxcel/tokenizer/tokenizer.h"
#include "tests/unit/support/expect_error.h"
#include "tests/unit/support/temporary_directory.h"
#include "tests/unit/tokenizer/support/tokenizer_files.h"

namespace mlxcel::test {
namespace {

/// Loads a directory with one file; the error or "no error".
std::string load_error(const std::string& name, const std::string& text) {
  TemporaryDirectory directory;
  directory.write(name, text);
  try {
    Tokenizer::load(directory.path());
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

void expect_tiktoken_error(const std::string& text, const std::string& part) {
  std::string error = load_error("x.tiktoken", text);
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST(HostileTiktoken, BrokenLines) {
  std::string ranks = tiktoken_ranks();
  EXPECT_EQ(load_error("x.tiktoken", ranks), "no error");
  EXPECT_EQ(load_error("x.tiktoken", ranks + "\n\r\n"), "no error");
  for (const char* line :
       {"YWJj",
        " 300",
        "YWJj ",
        "YWJj x",
        "YWJj -1",
        "YWJj 4194304",
        "YWJj 99999999999999999999",
        "YWJ 300",
        "YW=j 300",
        "==== 300",
        "Y*Jj 300",
        "\xff\xfe 300"}) {
    expect_tiktoken_error(ranks + line + "\n", "line 260");
  }
  expect_tiktoken_error("", "no token for the byte 0");
  expect_tiktoken_error(ranks.substr(20), "no token for the byte");
  expect_tiktoken_error(
      ranks + base64(std::string(600, 'x')) + " 300\n", "1 to 512 bytes"
  );
}

TEST(HostileTiktoken, RanksAndTokensGivenTwice) {
  TemporaryDirectory directory;
  directory.write("config.json", R"({"model_type":"kimi_k3"})");
  auto load = [&](const std::string& more) {
    directory.write("tiktoken.model", tiktoken_ranks() + more);
    return Tokenizer::load(directory.path());
  };
  EXPECT_ERROR(load(base64("ab") + " 300\n"), "given twice");
  EXPECT_ERROR(load(base64("xy") + " 258\n"), "id 258 is given to both");
  // A gap: the control ids would begin inside the ranks.
  EXPECT_ERROR(load(base64("xy") + " 300\n"), "id 300 is the rank of");
}

TEST(HostileTiktoken, TruncatedAnywhere) {
  std::string ranks = tiktoken_ranks();
  for (size_t size = ranks.size() - 20; size < ranks.size(); ++size) {
    load_error("x.tiktoken", ranks.substr(0, size));
  }
}

TEST(HostileQwen2Files, IdsOfTheVocabulary) {
  TemporaryDirectory directory;
  write_qwen2_files(directory, "{}");
  auto load = [&](const std::string& vocab) {
    directory.write("vocab.json", vocab);
    return Tokenizer::load(directory.path());
  };
  for (const char* vocab :
       {R"({"a":0,"b":2})",
        R"({"a":0,"b":-1})",
        R"({"a":0,"b":0})",
        R"({"a":0,"b":"1"})",
        R"({"a":0,"b":1.5})",
        R"({"a":0,"b":18446744073709551615})",
        R"({"a":0,"b":null})",
        R"({"a":0,"a":1})",
        R"(["a","b"])",
        "{",
        ""}) {
    EXPECT_ERROR(load(vocab), "");
  }
}

TEST(HostileQwen2Files, Merges) {
  TemporaryDirectory directory;
  write_qwen2_files(directory, "{}");
  auto load = [&](const std::string& merges) {
    directory.write("merges.txt", merges);
    return Tokenizer::load(directory.path());
  };
  EXPECT_ERROR(load("a b\na\n"), "merges.txt] line 2: expected two tokens");
  EXPECT_ERROR(load("a b c\n"), "line 1: expected two tokens");
  EXPECT_ERROR(load("a ab\n"), "\"aab\" is not in the vocabulary");
  EXPECT_ERROR(load("a \xff\n"), "not UTF-8");
  EXPECT_EQ(load("a b\r\n\n")->encode("ab"), (std::vector<int32_t>{256}));
  EXPECT_EQ(load("")->encode("ab"), (std::vector<int32_t>{'a', 'b'}));
}

TEST(HostileTokenizerConfig, AddedTokens) {
  TemporaryDirectory directory;
  auto load = [&](const std::string& added) {
    write_qwen2_files(directory, added);
    return Tokenizer::load(directory.path());
  };
  EXPECT_ERROR(load(R"({"x":{"content":"<x>"}})"), "the key is not an id");
  EXPECT_ERROR(load(R"({"-1":{"content":"<x>"}})"), "the key is not an id");
  EXPECT_ERROR(
      load(R"({"4194304":{"content":"<x>"}})"), "the key is not an id"
  );
  EXPECT_ERROR(load(R"({"257":{}})"), "content");
  EXPECT_ERROR(load(R"({"257":"<x>"})"), "257");
  EXPECT_ERROR(load(R"([1])"), "added_tokens_decoder");
}

}  // namespace
}  // namespace mlxcel::test
