#include "mlxcel/tokenizer/models/bpe.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "tests/unit/support/expect_error.h"
#include "tests/unit/tokenizer/support/tokenizer_file.h"

namespace mlxcel::test {
namespace {

using Ids = std::vector<int32_t>;
using List = std::vector<std::string>;

Ids encoded(const std::string& model, const std::string& text) {
  return TokenizerFile{.model = model}.load()->encode(text);
}

TEST(Bpe, MergesByRankThenFromTheLeft) {
  List tokens = {"a", "b", "c", "ab", "bc", "aa"};
  EXPECT_EQ(encoded(bpe_model(tokens, {"b c", "a b"}), "abc"), (Ids{0, 4}));
  EXPECT_EQ(encoded(bpe_model(tokens, {"a b", "b c"}), "abc"), (Ids{3, 2}));
  EXPECT_EQ(encoded(bpe_model(tokens, {"a a"}), "aaa"), (Ids{5, 0}));
}

TEST(Bpe, OfEqualMergesTheLastCounts) {
  List tokens = {"a", "b", "c", "ab", "bc"};
  EXPECT_EQ(
      encoded(bpe_model(tokens, {"a b", "b c", "a b"}), "abc"), (Ids{0, 4})
  );
}

TEST(Bpe, BothSpellingsOfMerges) {
  std::string vocab = R"("vocab":{"a":0,"b c":1,"ab c":2})";
  EXPECT_EQ(
      encoded(R"({"type":"BPE","merges":[["a","b c"]],)" + vocab + "}", "a"),
      (Ids{0})
  );
  EXPECT_EQ(
      encoded(
          R"({"merges":["#version: 0.2","a b"],
              "vocab":{"a":0,"b":1,"ab":2}})",
          "ab"
      ),
      (Ids{2})
  );
  EXPECT_ERROR(
      encoded(R"({"type":"BPE","merges":["a b c"],)" + vocab + "}", ""),
      "model.merges[0]: expected two tokens and a space, got \"a b c\""
  );
  EXPECT_ERROR(
      encoded(R"({"type":"BPE","merges":[["a"]],)" + vocab + "}", ""),
      "model.merges[0]: expected 2 tokens, got 1"
  );
}

TEST(Bpe, UnknownCharacters) {
  List tokens = {"<unk>", "a"};
  EXPECT_EQ(encoded(bpe_model(tokens, {}), "axya"), (Ids{1, 1}));
  EXPECT_EQ(
      encoded(bpe_model(tokens, {}, R"("unk_token":"<unk>")"), "axya"),
      (Ids{1, 0, 0, 1})
  );
  EXPECT_EQ(
      encoded(
          bpe_model(tokens, {}, R"("unk_token":"<unk>","fuse_unk":true)"),
          "axya"
      ),
      (Ids{1, 0, 1})
  );
  EXPECT_ERROR(
      encoded(bpe_model(tokens, {}, R"("unk_token":"[UNK]")"), "x"),
      "model.unk_token: \"[UNK]\" is not in the vocabulary"
  );
}

TEST(Bpe, ByteFallbackNeedsAllBytesOfACharacter) {
  List tokens = {"<unk>", "a", "<0xC3>", "<0xA9>"};
  std::string options =
      R"("unk_token":"<unk>","fuse_unk":true,"byte_fallback":true)";
  EXPECT_EQ(encoded(bpe_model(tokens, {}, options), "éa"), (Ids{2, 3, 1}));
  EXPECT_EQ(encoded(bpe_model(tokens, {}, options), "èa"), (Ids{0, 1}));
  // An unknown token waits for a known character, behind byte tokens.
  EXPECT_EQ(encoded(bpe_model(tokens, {}, options), "xéa"), (Ids{2, 3, 0, 1}));
}

TEST(Bpe, IgnoreMergesTakesWholePieces) {
  List tokens = {"a", "b", "c", "ab", "abc"};
  EXPECT_EQ(encoded(bpe_model(tokens, {"a b"}), "abc"), (Ids{3, 2}));
  EXPECT_EQ(
      encoded(bpe_model(tokens, {"a b"}, R"("ignore_merges":true)"), "abc"),
      (Ids{4})
  );
}

TEST(Bpe, PrefixAndSuffix) {
  List tokens = {"a", "##b", "##c</w>", "a</w>", "ab", "abc</w>"};
  std::string options =
      R"("continuing_subword_prefix":"##","end_of_word_suffix":"</w>")";
  EXPECT_EQ(encoded(bpe_model(tokens, {}, options), "a"), (Ids{3}));
  EXPECT_EQ(
      encoded(bpe_model(tokens, {"a ##b", "ab ##c</w>"}, options), "abc"),
      (Ids{5})
  );
  EXPECT_ERROR(
      encoded(bpe_model({"a", "b"}, {"a b"}, options), ""),
      "shorter than the prefix"
  );
}

TEST(Bpe, RefusesMergesOfUnknownTokens) {
  EXPECT_ERROR(
      encoded(bpe_model({"a", "ab"}, {"a b"}), ""),
      "model.merges[0]: \"b\" is not in the vocabulary"
  );
  EXPECT_ERROR(
      encoded(bpe_model({"a", "b"}, {"a b"}), ""),
      "model.merges[0]: \"ab\" is not in the vocabulary"
  );
}

TEST(Bpe, RefusesDropout) {
  EXPECT_ERROR(
      encoded(bpe_model({"a"}, {}, R"("dropout":0.1)"), ""), "model.dropout"
  );
  EXPECT_EQ(encoded(bpe_model({"a"}, {}, R"("dropout":null)"), "a"), (Ids{0}));
}

/// Merges the slow and obvious way.
Ids plainly_merged(
    Ids symbols, const std::vector<tokenizer::MergeTable::Merge>& merges
) {
  for (;;) {
    size_t best = merges.size();
    size_t at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (size_t rank = 0; rank < best; ++rank) {
        if (merges[rank].left == symbols[i] &&
            merges[rank].right == symbols[i + 1]) {
          best = rank;
          at = i;
        }
      }
    }
    if (best == merges.size()) {
      return symbols;
    }
    symbols[at] = merges[best].merged;
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

// Short and long words take different paths, and words between marks a third.
TEST(Bpe, AgreesWithThePlainAlgorithm) {
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    std::vector<std::string> tokens = {"a", "b", "c", "▁"};
    for (int b = 0; b < 256; ++b) {
      char name[8];
      std::snprintf(name, sizeof(name), "<0x%02X>", b);
      tokens.emplace_back(name);
    }
    std::vector<tokenizer::MergeTable::Merge> merges;
    bool marks_inside = round % 2 == 0;
    while (merges.size() < 30) {
      auto pick = [&] {
        size_t i = random() % (tokens.size() - 256);
        return static_cast<int32_t>(i < 4 ? i : i + 256);
      };
      int32_t left = pick();
      int32_t right = pick();
      std::string both = tokens[static_cast<size_t>(left)] +
                         tokens[static_cast<size_t>(right)];
      bool inside = both.find("▁", 1) != std::string::npos;
      if (std::find(tokens.begin(), tokens.end(), both) == tokens.end() &&
          (marks_inside || !inside)) {
        merges.push_back({left, right, static_cast<int32_t>(tokens.size())});
        tokens.push_back(both);
      }
    }
    tokenizer::Vocab vocab;
    for (size_t i = 0; i < tokens.size(); ++i) {
      vocab.add(tokens[i], static_cast<int32_t>(i));
    }
    vocab.build();
    tokenizer::BpeOptions options;
    options.byte_fallback = true;
    tokenizer::Bpe bpe(std::move(vocab), merges, options);
    auto scratch = bpe.make_scratch();
    for (int i = 0; i < 60; ++i) {
      std::string text;
      Ids symbols;
      for (size_t size = 1 + random() % 90; size > 0; --size) {
        auto symbol = static_cast<int32_t>(random() % 4);
        symbols.push_back(symbol);
        text += tokens[static_cast<size_t>(symbol)];
      }
      Ids ids;
      bpe.encode(text, *scratch, ids);
      ASSERT_EQ(ids, plainly_merged(symbols, merges)) << text;
    }
  }
}

TEST(Bpe, OneLongWordTakesNoQuadraticTime) {
  List tokens = {"a"};
  List merges;
  for (int i = 0; i < 8; ++i) {
    merges.push_back(tokens.back() + " " + tokens.back());
    tokens.push_back(tokens.back() + tokens.back());
  }
  auto tokenizer = TokenizerFile{.model = bpe_model(tokens, merges)}.load();
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(tokenizer->encode(std::string(1 << 20, 'a')), Ids(1 << 12, 8));
  // A quadratic algorithm would take minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace mlxcel::test
