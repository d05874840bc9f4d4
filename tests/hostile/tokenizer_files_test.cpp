// Tokenizer files beside tokenizer.json from strangers.

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "mlxcel/core/base64.h"
#include "mlxcel/tokenizer/tokenizer.h"
#include "mlxcel/tokenizer/unicode/utf8.h"
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
      ranks + encode_base64(std::string(600, 'x')) + " 300\n", "1 to 512 bytes"
  );
}

TEST(HostileTiktoken, RanksAndTokensGivenTwice) {
  TemporaryDirectory directory;
  directory.write("config.json", R"({"model_type":"kimi_k3"})");
  auto load = [&](const std::string& more) {
    directory.write("tiktoken.model", tiktoken_ranks() + more);
    return Tokenizer::load(directory.path());
  };
  EXPECT_ERROR(load(encode_base64("ab") + " 300\n"), "given twice");
  EXPECT_ERROR(load(encode_base64("xy") + " 258\n"), "id 258 is given to both");
  // A gap: the control ids would begin inside the ranks.
  EXPECT_ERROR(load(encode_base64("xy") + " 300\n"), "id 300 is the rank of");
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

using Piece = tokenizer::SentencePieceFile::Piece;
using Type = tokenizer::SentencePieceFile::Type;

SentencePieceBuilder small_model() {
  SentencePieceBuilder model;
  model.pieces = {
      {"<unk>", 0, Type::unknown},
      {"<s>", 0, Type::control},
      {"▁", -1, Type::normal},
      {"a", -2, Type::normal},
      {"b", -3, Type::normal},
      {"ab", -4, Type::normal}};
  return model;
}

void expect_model_error(
    const SentencePieceBuilder& model, const std::string& part
) {
  std::string error = load_error("tokenizer.model", model.bytes());
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST(HostileSentencePiece, TruncatedAnywhere) {
  std::string bytes = small_model().bytes();
  EXPECT_EQ(load_error("tokenizer.model", bytes), "no error");
  for (size_t size = 0; size < bytes.size(); ++size) {
    load_error("tokenizer.model", bytes.substr(0, size));
  }
}

TEST(HostileSentencePiece, BrokenFields) {
  std::string bytes = small_model().bytes();
  for (const std::string& tail :
       {std::string("\x0a\xff\xff\xff\xff\x0f"),  // 4 GB of piece
        std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        std::string("\x0a\x80"),
        std::string("\x08\x01"),     // pieces as a number
        std::string("\x0b"),         // a group
        std::string("\x00\x01", 2),  // field 0
        std::string("\x0d\x01"),     // short fixed32
        std::string("\x09\x01")}) {
    std::string error = load_error("tokenizer.model", bytes + tail);
    EXPECT_NE(error, "no error");
    EXPECT_NE(error.find("tokenizer.model"), std::string::npos) << error;
  }
}

TEST(HostileSentencePiece, Pieces) {
  auto with = [](const Piece& piece) {
    SentencePieceBuilder model = small_model();
    model.pieces.push_back(piece);
    return model;
  };
  expect_model_error(with({"", 0, Type::normal}), "pieces[6]");
  expect_model_error(with({"a", 0, Type::normal}), "\"a\" is given twice");
  expect_model_error(with({"\xff", 0, Type::normal}), "not UTF-8");
  expect_model_error(
      with({std::string("x\0y", 3), 0, Type::normal}), "holds a NUL"
  );
  expect_model_error(with({"<u>", 0, Type::unknown}), "second unknown piece");
  expect_model_error(with({"<0x00>", 0, Type::byte}), "byte_fallback is off");
  expect_model_error(
      with({"c", std::numeric_limits<float>::quiet_NaN(), Type::normal}),
      "not finite"
  );
  expect_model_error(
      with({"c", std::numeric_limits<float>::infinity(), Type::normal}),
      "not finite"
  );
  expect_model_error(
      with({"c", 0, static_cast<Type>(7)}), "a type from 1 to 6"
  );
  expect_model_error(
      with({std::string(8000, 'x'), 0, Type::normal}), "1 to 7999 bytes"
  );
  SentencePieceBuilder model;
  expect_model_error(model, "there is no piece");
  model.pieces = {{"a", 0, Type::normal}};
  expect_model_error(model, "there is no unknown piece");
  model.byte_fallback = true;
  expect_model_error(model, "there is no <0x00>");
  model = small_model();
  model.model_type = 3;
  expect_model_error(model, "expected unigram (1) or bpe (2), got 3");
}

TEST(HostileSentencePiece, CharacterMaps) {
  auto with = [](const std::string& map) {
    SentencePieceBuilder model = small_model();
    model.char_map = map;
    return load_error("tokenizer.model", model.bytes());
  };
  auto size = [](uint32_t bytes) {
    return std::string(reinterpret_cast<const char*>(&bytes), 4);
  };
  EXPECT_NE(with("abc"), "no error");
  EXPECT_NE(with(size(0xffffffff) + "abc"), "no error");
  EXPECT_NE(with(size(1000) + std::string(2000, 'x')), "no error");
  EXPECT_NE(with(size(1024) + std::string(1024, 'x')), "no error");
  EXPECT_NE(with(size(1024) + std::string(1024, 'x') + "y"), "no error");
  std::string ff = size(1024) + std::string(1024, '\xff');
  EXPECT_NE(with(ff + "\xff" + std::string(1, '\0')), "no error");
}

TEST(HostileSentencePiece, ArraysThatPointAnywhere) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    uint32_t size = 1024;
    std::string map(reinterpret_cast<const char*>(&size), 4);
    for (uint32_t i = 0; i < size; ++i) {
      map += static_cast<char>(random() % (round % 2 == 0 ? 256 : 4));
    }
    map += "a\u00e9bc";
    map += '\0';
    SentencePieceBuilder model = small_model();
    model.char_map = map;
    TemporaryDirectory directory;
    directory.write("tokenizer.model", model.bytes());
    auto tokenizer = Tokenizer::load(directory.path());
    std::string text;
    for (char32_t c = 1; c < 0x250; ++c) {
      utf8::append(text, c);
    }
    tokenizer->encode(text);
  }
}

TEST(HostileSentencePiece, LongTextTakesLinearTime) {
  for (uint64_t kind : {1, 2}) {
    SentencePieceBuilder model = small_model();
    model.model_type = kind;
    TemporaryDirectory directory;
    directory.write("tokenizer.model", model.bytes());
    auto tokenizer = Tokenizer::load(directory.path());
    std::string text(1 << 20, 'a');
    EXPECT_EQ(tokenizer->encode(text).size(), text.size() + 1);
  }
}

TEST(HostileSentencePiece, ChainsOfUnusedPieces) {
  // Each is made of the one before: taking them apart must not recurse
  // without end.
  SentencePieceBuilder model = small_model();
  model.model_type = 2;
  std::string text = "ab";
  for (int i = 0; i < 3000; ++i) {
    text += 'a';
    model.pieces.push_back({text, static_cast<float>(i), Type::unused});
  }
  TemporaryDirectory directory;
  directory.write("tokenizer.model", model.bytes());
  EXPECT_FALSE(Tokenizer::load(directory.path())->encode(text).empty());
}

TEST(HostilePlamo, BrokenLines) {
  std::string rows = plamo_rows();
  auto error = [&](const std::string& more) {
    return load_error("tokenizer.jsonl", rows + more);
  };
  EXPECT_EQ(error(""), "no error");
  EXPECT_EQ(error("[\"x\", -1, \"NORMAL\"]"), "no error");
  for (const char* line :
       {"\n",
        "[]",
        "[\"x\"]",
        "[\"\", 0]",
        "[1, 0]",
        "[\"x\", \"y\"]",
        "[\"x\", 1e999]",
        "[\"x\", NaN]",
        "{\"x\": 0}",
        "[\"x\", 0, 1]",
        "[\"\xff\", 0]",
        "[[[["}) {
    EXPECT_NE(error(line).find("line 261"), std::string::npos)
        << line << ": " << error(line);
  }
  EXPECT_NE(
      load_error("tokenizer.jsonl", "").find("no byte token <0x00>"),
      std::string::npos
  );
  for (size_t cut = 1; cut < 40; ++cut) {
    load_error("tokenizer.jsonl", rows.substr(0, rows.size() - cut));
  }
}

TEST(HostilePlamo, LongTextTakesLinearTime) {
  TemporaryDirectory directory;
  directory.write("tokenizer.jsonl", plamo_rows());
  std::string text(1 << 20, 'a');
  EXPECT_EQ(
      Tokenizer::load(directory.path())->encode(text).size(), text.size()
  );
}

TEST(HostileBertFiles, LinesOfAllKinds) {
  std::string special = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  EXPECT_EQ(load_error("vocab.txt", special), "no error");
  EXPECT_EQ(load_error("vocab.txt", special + "a\na\n\n##\n##a\n"), "no error");
  EXPECT_NE(load_error("vocab.txt", special + "\xff\n"), "no error");
  EXPECT_NE(load_error("vocab.txt", ""), "no error");
  EXPECT_NE(load_error("vocab.txt", std::string("\0\0", 2)), "no error");
  EXPECT_NE(load_error("vocab.txt", std::string(5 << 20, '\n')), "no error");
}

}  // namespace
}  // namespace mlxcel::test
