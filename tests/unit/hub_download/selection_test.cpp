#include "mlxcel/hub/download/selection.h"

#include <gtest/gtest.h>

#include "mlxcel/core/error.h"

namespace mlxcel::hub {
namespace {

std::vector<std::string> select(
    const std::vector<std::string>& paths,
    const std::vector<std::string>& globs = {}
) {
  std::vector<std::string> unsafe;
  return select_files(paths, globs, unsafe);
}

TEST(Selection, ModelFiles) {
  for (const char* path : {
           "model.safetensors",
           "model-00001-of-00002.safetensors",
           "model.safetensors.index.json",
           "config.json",
           "generation_config.json",
           "tokenizer.json",
           "tokenizer.model",
           "qwen.tiktoken",
           "chat_template.jinja",
           "vocab.json",
           "vocab.txt",
           "vocab.bpe",
           "merges.txt",
           "added_tokens.txt",
           "tokenizer.jsonl",
           "vocab",
           "merges",
           "tokenizer",
           "1_Pooling/config.json",
           "TOKENIZER.JSON",
       }) {
    EXPECT_TRUE(is_model_file(path)) << path;
  }
}

TEST(Selection, OtherFiles) {
  for (const char* path : {
           "pytorch_model.bin",
           "pytorch_model.bin.index.json",
           "tf_model.h5.index.json",
           "model.gguf",
           "model.onnx",
           "README.md",
           "readme.json",
           "LICENSE",
           "LICENSE.txt",
           "license.json",
           "NOTICE.txt",
           "USAGE.txt",
           "USAGE_POLICY.json",
           "notes.txt",
           "image.png",
           "modeling_x.py",
           "tokenization_x.py",
           "config.yaml",
           ".gitattributes",
           ".config.json",
           ".cache/config.json",
           "a/.b/config.json",
           "data.jsonl",
           "weights.pt",
           "tokenizer.bin",
       }) {
    EXPECT_FALSE(is_model_file(path)) << path;
  }
}

TEST(Selection, SafePaths) {
  for (std::string path :
       {"a", "a/b.json", "..a", "a..", "...", "sp ace", "\xc3\xa4"}) {
    EXPECT_TRUE(is_safe_path(path)) << path;
  }
  for (std::string path :
       {std::string(""),
        std::string("/a"),
        std::string("a/"),
        std::string("a//b"),
        std::string("."),
        std::string("../a"),
        std::string("a/.."),
        std::string("a/./b"),
        std::string("a\\b"),
        std::string("a\0b", 3),
        std::string("a\nb"),
        std::string("a\x7f"),
        std::string("\xff"),
        std::string(256, 'a'),
        std::string("a/") + std::string(256, 'b')}) {
    EXPECT_FALSE(is_safe_path(path)) << path;
  }
}

TEST(Selection, Globs) {
  struct Case {
    const char* pattern;
    const char* text;
    bool matches;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"*", "", true},
           {"*", "a/b", true},
           {"", "", true},
           {"", "a", false},
           {"*.json", "a/b.json", true},
           {"*.json", "a.jsonl", false},
           {"a?c", "abc", true},
           {"a?c", "ac", false},
           {"[ab]x", "bx", true},
           {"[!ab]x", "bx", false},
           {"[!ab]x", "cx", true},
           {"[a-c]", "b", true},
           {"[a-c]", "d", false},
           {"[]]", "]", true},
           {"[a", "[a", true},
           {"[a-]", "-", true},
           {"sub/", "sub/x", true},
           {"sub/", "sub", false},
           {"*a*b*c", "xxaxxbxxc", true},
           {"*a*b*c", "xxaxxbxx", false},
           {"a**b", "ab", true},
       }) {
    EXPECT_EQ(glob_match(c.pattern, c.text), c.matches)
        << c.pattern << " " << c.text;
  }
}

TEST(Selection, GlobsTakeBoundedTime) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) {
    pattern += "*a";
  }
  EXPECT_FALSE(glob_match(pattern + "b", std::string(20000, 'a')));
}

TEST(Selection, WeightsComeLast) {
  EXPECT_EQ(
      select({"b.safetensors", "z.json", "a.safetensors", "README.md"}),
      (std::vector<std::string>{"z.json", "a.safetensors", "b.safetensors"})
  );
}

TEST(Selection, GlobsNarrow) {
  EXPECT_EQ(
      select({"a.json", "b.json", "c.bin", "d/e.json"}, {"a*", "c*", "d/"}),
      (std::vector<std::string>{"a.json", "d/e.json"})
  );
}

TEST(Selection, UnsafeOnesAreTold) {
  std::vector<std::string> unsafe;
  select_files({"../a.json", "b.json", "../c.png"}, {}, unsafe);
  EXPECT_EQ(unsafe, (std::vector<std::string>{"../a.json", "../c.png"}));
}

TEST(Selection, ConsolidatedWeightsAreASecondCopy) {
  EXPECT_EQ(
      select({"consolidated.safetensors", "model.safetensors"}),
      (std::vector<std::string>{"model.safetensors"})
  );
  EXPECT_EQ(
      select({"consolidated-00001-of-00002.safetensors", "v/x.safetensors"})
          .size(),
      2u
  );
}

TEST(Selection, ConflictsAreRefused) {
  EXPECT_THROW(select({"a.json", "A.JSON"}), Error);
  EXPECT_THROW(select({"a.json", "a.json/b.json"}), Error);
  EXPECT_THROW(select({"a.json", "A.json/b/c.json"}), Error);
  EXPECT_NO_THROW(select({"a.json", "a/b.json", "README", "readme"}));
}

}  // namespace
}  // namespace mlxcel::hub
