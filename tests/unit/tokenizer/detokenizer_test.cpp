#include "mlxcel/tokenizer/detokenizer.h"

#include <gtest/gtest.h>

#include "tests/unit/tokenizer/support/tokenizer_file.h"

namespace mlxcel::test {
namespace {

using Ids = std::vector<int32_t>;
using List = std::vector<std::string>;

List streamed(
    const Tokenizer& tokenizer,
    const Ids& prompt,
    const Ids& ids,
    bool skip_special = true
) {
  StreamingDetokenizer detokenizer(tokenizer, prompt, skip_special);
  List texts;
  for (int32_t id : ids) {
    texts.push_back(detokenizer.push(id));
  }
  texts.push_back(detokenizer.flush());
  return texts;
}

std::shared_ptr<const Tokenizer> byte_level(const List& tokens) {
  TokenizerFile file;
  file.model = bpe_model(tokens, {});
  file.decoder = R"({"type":"ByteLevel"})";
  file.added_tokens = json_list({added_token("<eos>")});
  return file.load();
}

std::shared_ptr<const Tokenizer> sentencepiece(const List& tokens) {
  TokenizerFile file;
  file.model = bpe_model(tokens, {});
  file.decoder = R"({"type":"Sequence","decoders":[
      {"type":"Replace","pattern":{"String":"▁"},"content":" "},
      {"type":"ByteFallback"},{"type":"Fuse"},
      {"type":"Strip","content":" ","start":1,"stop":0}]})";
  file.added_tokens = json_list({added_token("<s>")});
  return file.load();
}

TEST(StreamingDetokenizer, ByteFallbackGivesWholeCharacters) {
  auto tokenizer =
      sentencepiece({"▁hi", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "x"});
  EXPECT_EQ(
      streamed(*tokenizer, {}, {0, 1, 2, 3, 4, 5}),
      (List{"hi", "", "", "", "😀", "x", ""})
  );
}

TEST(StreamingDetokenizer, BrokenBytesBecomeReplacementCharacters) {
  auto tokenizer = sentencepiece({"a", "<0xF0>", "<0x9F>", "<0xFF>"});
  EXPECT_EQ(
      streamed(*tokenizer, {}, {1, 2, 0}), (List{"", "", "\ufffd\ufffda", ""})
  );
  EXPECT_EQ(
      streamed(*tokenizer, {}, {1, 3, 0}), (List{"", "\ufffd\ufffd", "a", ""})
  );
  EXPECT_EQ(streamed(*tokenizer, {}, {0, 1}), (List{"a", "", "\ufffd"}));
}

TEST(StreamingDetokenizer, ByteLevelHoldsOnlyPartsOfCharacters) {
  auto tokenizer = byte_level({"Ġa", "ðŁĺ", "Ģb", "Ã", "x"});
  EXPECT_EQ(
      streamed(*tokenizer, {}, {0, 1, 2, 0}), (List{" a", "", "😀b", " a", ""})
  );
  EXPECT_EQ(streamed(*tokenizer, {}, {3, 4}), (List{"", "\ufffdx", ""}));
  EXPECT_EQ(streamed(*tokenizer, {}, {3}), (List{"", "\ufffd"}));
}

// A token may itself spell U+FFFD, which is no sign of bytes to come.
TEST(StreamingDetokenizer, TokenOfAReplacementCharacterIsNotHeld) {
  auto tokenizer = byte_level({"Ġï¿½", "a"});
  EXPECT_EQ(streamed(*tokenizer, {}, {0, 1}), (List{" \ufffd", "a", ""}));
}

TEST(StreamingDetokenizer, ThePromptIsContext) {
  auto tokenizer = sentencepiece({"▁a", "<0xC3>", "<0xA9>"});
  EXPECT_EQ(streamed(*tokenizer, {}, {0, 0}), (List{"a", " a", ""}));
  EXPECT_EQ(streamed(*tokenizer, {0}, {0, 0}), (List{" a", " a", ""}));
  // A special token gives no text, so the text still begins.
  EXPECT_EQ(streamed(*tokenizer, {3}, {0}), (List{"a", ""}));
  EXPECT_EQ(streamed(*tokenizer, {0, 1}, {2}), (List{"é", ""}));
}

TEST(StreamingDetokenizer, SpecialTokensOnRequest) {
  auto tokenizer = byte_level({"a"});
  EXPECT_EQ(streamed(*tokenizer, {}, {0, 1, 0}), (List{"a", "", "a", ""}));
  EXPECT_EQ(streamed(*tokenizer, {}, {0, 1}, false), (List{"a", "<eos>", ""}));
}

TEST(StreamingDetokenizer, IdsWithoutATokenGiveNothing) {
  auto tokenizer = byte_level({"a"});
  EXPECT_EQ(streamed(*tokenizer, {}, {-1, 0, 99}), (List{"", "a", "", ""}));
}

}  // namespace
}  // namespace mlxcel::test
