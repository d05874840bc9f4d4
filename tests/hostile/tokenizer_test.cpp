// tokenizer.json files from strangers.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "mlxcel/core/base64.h"
#include "tests/unit/support/expect_error.h"
#include "tests/unit/support/temporary_directory.h"
#include "tests/unit/tokenizer/support/tokenizer_file.h"
#include "tests/unit/tokenizer/support/tokenizer_files.h"

namespace mlxcel::test {
namespace {

using Ids = std::vector<int32_t>;

std::string load_error(const std::string& text) {
  TemporaryDirectory directory;
  try {
    Tokenizer::from_json(directory.write("tokenizer.json", text));
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

void expect_refused(const std::string& text, const std::string& message) {
  std::string error = load_error(text);
  EXPECT_NE(error.find(message), std::string::npos)
      << "message: " << error << "\nexpected to contain: " << message;
  EXPECT_NE(error.find("tokenizer.json"), std::string::npos) << error;
}

TokenizerFile small_file() {
  TokenizerFile file;
  file.model = bpe_model({"a", "b", "ab"}, {"a b"});
  return file;
}

TEST(HostileTokenizer, NoJson) {
  for (const char* text :
       {"",
        "{",
        "[]",
        "null",
        "{\"model\":}",
        "{\"model\":{}} x",
        "\xff",
        "{\"a\":\"\xff\"}",
        "{\"model\":{\"vocab\":{\"\\ud800\":1}}}"}) {
    EXPECT_NE(load_error(text), "no error") << text;
  }
}

TEST(HostileTokenizer, TruncatedAnywhere) {
  TokenizerFile file = small_file();
  file.added_tokens = json_list({added_token("<a>")});
  file.normalizer = R"({"type":"Lowercase"})";
  std::string text = file.text();
  EXPECT_EQ(load_error(text), "no error");
  for (size_t size = 0; size < text.size(); ++size) {
    ASSERT_NE(load_error(text.substr(0, size)), "no error") << size;
  }
}

TEST(HostileTokenizer, DeepNesting) {
  std::string deep = std::string(100000, '[') + std::string(100000, ']');
  expect_refused(deep, "document");
  TokenizerFile file = small_file();
  file.normalizer = deep;
  expect_refused(file.text(), "document");
  file = small_file();
  std::string sequences;
  for (int i = 0; i < 40; ++i) {
    sequences += R"({"type":"Sequence","normalizers":[)";
  }
  file.normalizer = sequences + R"({"type":"Lowercase"})";
  for (int i = 0; i < 40; ++i) {
    file.normalizer += "]}";
  }
  EXPECT_EQ(load_error(file.text()), "no error");
}

TEST(HostileTokenizer, LongSequences) {
  std::string steps = R"({"type":"Lowercase"})";
  std::string digits = R"({"type":"Digits","individual_digits":true})";
  std::string fuse = R"({"type":"Fuse"})";
  auto many = [](const std::string& element) {
    return json_list(std::vector<std::string>(100000, element));
  };
  TokenizerFile file = small_file();
  file.normalizer = R"({"type":"Sequence","normalizers":)" + many(steps) + "}";
  expect_refused(file.text(), "more than 64");
  file = small_file();
  file.pre_tokenizer =
      R"({"type":"Sequence","pretokenizers":)" + many(digits) + "}";
  expect_refused(file.text(), "more than 64");
  file = small_file();
  file.decoder = R"({"type":"Sequence","decoders":)" + many(fuse) + "}";
  expect_refused(file.text(), "more than 64");
}

TEST(HostileTokenizer, MergesOfUnknownTokens) {
  TokenizerFile file;
  file.model = bpe_model({"a", "b"}, {"a c"});
  expect_refused(file.text(), "\"c\" is not in the vocabulary");
  file.model = R"({"type":"BPE","vocab":{"a":0},"merges":[["a",1]]})";
  expect_refused(file.text(), "model.merges");
  file.model = R"({"type":"BPE","vocab":{"a":0},"merges":[7]})";
  expect_refused(file.text(), "model.merges");
  file.model = R"({"type":"BPE","vocab":{"a":0}})";
  expect_refused(file.text(), "model.merges: missing");
  file.model = R"({"type":"BPE","merges":[]})";
  expect_refused(file.text(), "model.vocab: missing");
}

TEST(HostileTokenizer, Ids) {
  TokenizerFile file;
  for (const char* id :
       {"-1",
        "1.5",
        "\"1\"",
        "4194304",
        "4294967296",
        "18446744073709551616",
        "null",
        "true"}) {
    file.model = std::string(R"({"type":"BPE","vocab":{"a":)") + id +
                 R"(},"merges":[]})";
    EXPECT_NE(load_error(file.text()), "no error") << id;
  }
  file.model = R"({"type":"BPE","vocab":{"a":1,"b":1},"merges":[]})";
  EXPECT_NE(
      load_error(file.text()).find("id 1 is given to both \"a\" and \"b\""),
      std::string::npos
  );
  // The highest id that a file may name, far above what it holds.
  file.model = R"({"type":"BPE","vocab":{"a":4194303},"merges":[]})";
  EXPECT_EQ(file.load()->encode("a"), (Ids{4194303}));
}

TEST(HostileTokenizer, TokenGivenTwice) {
  TokenizerFile file;
  file.model = R"({"type":"BPE","vocab":{"a":0,"a":1},"merges":[]})";
  auto tokenizer = file.load();
  EXPECT_EQ(tokenizer->encode("a"), (Ids{1}));
  EXPECT_EQ(tokenizer->id_to_token(0), "");
}

TEST(HostileTokenizer, AddedTokens) {
  TokenizerFile file = small_file();
  file.added_tokens = json_list({added_token(""), added_token("")});
  EXPECT_EQ(file.load()->encode("ab"), (Ids{2}));
  file.added_tokens = R"([{"id":0}])";
  expect_refused(file.text(), "added_tokens[0].content");
  file.added_tokens = R"([{"content":"x","lstrip":"yes"}])";
  expect_refused(file.text(), "added_tokens[0].lstrip");
  file.added_tokens = R"([1])";
  expect_refused(file.text(), "added_tokens[0]");
  file.added_tokens = R"({"a":1})";
  expect_refused(file.text(), "added_tokens");
  file.added_tokens = json_list({added_token(std::string(5000, 'x'))});
  EXPECT_NE(
      load_error(file.text()).find("longer than 4096 bytes"), std::string::npos
  );
  // A normalizer may leave nothing of a token to look for.
  file.added_tokens = json_list({added_token(" ", R"("normalized":true)")});
  file.normalizer = R"({"type":"Strip","strip_left":true,"strip_right":true})";
  EXPECT_EQ(file.load()->encode(" ab "), (Ids{2}));
}

TEST(HostileTokenizer, UnknownParts) {
  TokenizerFile file = small_file();
  file.model = R"({"type":"Novel","vocab":{}})";
  expect_refused(file.text(), "the type \"Novel\" is not supported");
  file.model = "[]";
  expect_refused(file.text(), "model: expected an object");
  expect_refused(R"({"version":"2.0"})", "version");
  expect_refused(R"({"surprise":1})", "the field \"surprise\" is not known");
  expect_refused(R"({"model":{},"model":{}})", "model: given twice");
}

TEST(HostileTokenizer, CatastrophicPatternHitsALimit) {
  TokenizerFile file = small_file();
  auto split = [&](const char* pattern) {
    file.pre_tokenizer = R"({"type":"Split","pattern":{"Regex":)" +
                         quoted(pattern) +
                         R"(},"behavior":"Isolated","invert":false})";
    return file.load();
  };
  auto start = std::chrono::steady_clock::now();
  std::string text = std::string(5000, 'a') + "bc";
  EXPECT_ERROR(split("(a+)+$")->encode(text), "[regex]");
  EXPECT_ERROR(split("(a|a)*?\\bc")->encode(text), "[regex]");
  EXPECT_ERROR(
      split("(?:a+b?)+c")->encode(std::string(1 << 20, 'a')), "[regex]"
  );
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(HostileTokenizer, HugePatterns) {
  TokenizerFile file = small_file();
  auto error = [&](const std::string& pattern) {
    file.pre_tokenizer = R"({"type":"Split","pattern":{"Regex":)" +
                         quoted(pattern) +
                         R"(},"behavior":"Isolated","invert":false})";
    return load_error(file.text());
  };
  EXPECT_NE(error(std::string(100000, '(')), "no error");
  EXPECT_NE(error(std::string(100000, '[')), "no error");
  EXPECT_NE(error("((((a{1000}){1000}){1000}){1000})"), "no error");
  EXPECT_NE(error("a{100001}"), "no error");
  // States would double with each letter.
  EXPECT_EQ(error("(?:a|b)*a(?:a|b){40}c"), "no error");
}

TEST(HostileTokenizer, GrowingReplacements) {
  TokenizerFile file = small_file();
  file.normalizer = R"({"type":"Sequence","normalizers":[)";
  for (int i = 0; i < 60; ++i) {
    file.normalizer +=
        std::string(i == 0 ? "" : ",") +
        R"({"type":"Replace","pattern":{"String":"a"},"content":"aa"})";
  }
  file.normalizer += "]}";
  EXPECT_ERROR(file.load()->encode("a"), "blow up");
}

std::string unigram_file(const std::string& fields) {
  TokenizerFile file;
  file.model = R"({"type":"Unigram",)" + fields + "}";
  return file.text();
}

TEST(HostileTokenizer, UnigramPieces) {
  expect_refused(unigram_file(R"("unk_id":0)"), "model.vocab: missing");
  expect_refused(unigram_file(R"("vocab":{"a":1})"), "model.vocab");
  expect_refused(unigram_file(R"("vocab":[["a"]])"), "model.vocab[0]");
  expect_refused(unigram_file(R"("vocab":[["a",0],["b","x"]])"), "vocab[1]");
  expect_refused(unigram_file(R"("vocab":[["a",1e999]])"), "document");
  for (const char* id : {"1", "-1", "4294967296", "0.5", "\"0\""}) {
    expect_refused(
        unigram_file(R"("vocab":[["a",0]],"unk_id":)" + std::string(id)),
        "model.unk_id"
    );
  }
  expect_refused(
      unigram_file(R"("vocab":[["a",0]],"byte_fallback":1)"),
      "model.byte_fallback"
  );
  EXPECT_EQ(load_error(unigram_file(R"("vocab":[["",0],["",0]])")), "no error");
}

TEST(HostileTokenizer, WordPieceFields) {
  TokenizerFile file;
  auto error = [&](const std::string& fields) {
    file.model = R"({"type":"WordPiece",)" + fields + "}";
    return load_error(file.text());
  };
  EXPECT_NE(error(R"("vocab":{})").find("model.unk_token"), std::string::npos);
  std::string rest =
      R"("unk_token":"u","continuing_subword_prefix":"##","vocab":{"a":0},)";
  EXPECT_NE(error(rest + R"("max_input_chars_per_word":-1)"), "no error");
  EXPECT_EQ(
      error(rest + R"("max_input_chars_per_word":18446744073709551615)"),
      "no error"
  );
}

TokenizerFile with_map(const std::string& blob) {
  TokenizerFile file = small_file();
  file.normalizer = R"({"type":"Precompiled","precompiled_charsmap":)" +
                    quoted(encode_base64(blob)) + "}";
  return file;
}

std::string character_map(
    uint32_t size, const std::vector<uint32_t>& units, const std::string& rest
) {
  std::string blob(reinterpret_cast<const char*>(&size), 4);
  blob.append(reinterpret_cast<const char*>(units.data()), units.size() * 4);
  return blob + rest;
}

TEST(HostileTokenizer, CharacterMaps) {
  std::string end("b\0", 2);
  std::vector<uint32_t> units(1024, 0);
  expect_refused(with_map("abc").text(), "precompiled_charsmap");
  for (uint32_t size : {0u, 5u, 4097u, 8192u, 0x80000000u, 0xffffffffu}) {
    expect_refused(
        with_map(character_map(size, units, end)).text(), "precompiled_charsmap"
    );
  }
  expect_refused(
      with_map(character_map(4096, units, "\xff")).text(),
      "precompiled_charsmap"
  );
  TokenizerFile file = small_file();
  file.normalizer = R"({"type":"Precompiled","precompiled_charsmap":"a==="})";
  expect_refused(file.text(), "expected Base64");
  // Offsets that lead out of the array, and values behind the replacements.
  for (uint32_t unit :
       {0xffffffffu, 0x7ffffe00u, 256u << 10, 1u << 31 | 0xffffffu}) {
    std::fill(units.begin(), units.end(), unit);
    auto tokenizer = with_map(character_map(4096, units, end)).load();
    EXPECT_EQ(tokenizer->encode("abé\xf0\x9f\x98\x80"), (Ids{2}));
  }
  // a becomes b.
  units.assign(1024, 0);
  units[0] = 256 << 10;
  units[256 ^ 'a'] = 512 << 10 | 1 << 8 | 'a';
  units[256 ^ 'a' ^ 512] = 1u << 31;
  auto tokenizer = with_map(character_map(4096, units, end)).load();
  EXPECT_EQ(tokenizer->encode("ab"), (Ids{1, 1}));
}

TEST(HostileTokenizer, NoRegularFile) {
  TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "tokenizer.json");
  EXPECT_ERROR(
      Tokenizer::from_json(directory / "tokenizer.json"), "tokenizer.json"
  );
  EXPECT_ERROR(Tokenizer::from_json("/dev/zero"), "/dev/zero");
}

}  // namespace
}  // namespace mlxcel::test
