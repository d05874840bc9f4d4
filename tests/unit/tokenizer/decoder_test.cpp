#include "mlxcel/tokenizer/decode/decoder.h"

#include <gtest/gtest.h>

#include "tests/unit/support/expect_error.h"
#include "tests/unit/tokenizer/support/tokenizer_file.h"

namespace mlxcel::test {
namespace {

using List = std::vector<std::string>;

std::string decoded(const std::string& json, const List& tokens) {
  tokenizer::Decoder decoder(Json::parse(json, "test"));
  std::string whole;
  tokenizer::DecodeStream stream = decoder.stream(false);
  for (const std::string& token : tokens) {
    stream.push(token, whole);
  }
  stream.finish(whole);
  return whole;
}

std::string sequence(const List& steps) {
  return R"({"type":"Sequence","decoders":)" + json_list(steps) + "}";
}

const char* const byte_level = R"({"type":"ByteLevel"})";
const char* const byte_fallback = R"({"type":"ByteFallback"})";
const char* const fuse = R"({"type":"Fuse"})";
const char* const spaces =
    R"({"type":"Replace","pattern":{"String":"▁"},"content":" "})";

std::string strip(int start, int stop) {
  return R"({"type":"Strip","content":" ","start":)" + std::to_string(start) +
         ",\"stop\":" + std::to_string(stop) + "}";
}

TEST(Decoder, NoneJoinsWithSpaces) {
  tokenizer::DecodeStream stream = tokenizer::Decoder().stream(false);
  std::string text;
  stream.push("a", text);
  stream.push("b", text);
  stream.finish(text);
  EXPECT_EQ(text, "a b");
}

TEST(Decoder, ByteLevelJoinsBytesOfTokens) {
  EXPECT_EQ(decoded(byte_level, {"Ġhi", "Ã", "©"}), " hié");
  EXPECT_EQ(decoded(byte_level, {"Ã", "a"}), "\ufffda");
  // A token outside of the alphabet is itself.
  EXPECT_EQ(decoded(byte_level, {"<|é x|>"}), "<|é x|>");
}

TEST(Decoder, ByteFallbackTakesRuns) {
  EXPECT_EQ(decoded(byte_fallback, {"<0xC3>", "<0xA9>", "a"}), "éa");
  EXPECT_EQ(
      decoded(byte_fallback, {"<0xC3>", "<0xA9>", "<0xC3>", "a"}),
      "\ufffd\ufffd\ufffda"
  );
  EXPECT_EQ(decoded(byte_fallback, {"<0xab>", "<0x+A>"}), "\ufffd\ufffd");
  EXPECT_EQ(
      decoded(byte_fallback, {"<0x41>", "<0x4>", "<0xGG>"}), "A<0x4><0xGG>"
  );
}

TEST(Decoder, StripTakesTokensOrTheWhole) {
  EXPECT_EQ(decoded(strip(1, 0), {"  a", " b"}), " ab");
  EXPECT_EQ(decoded(strip(0, 1), {"a  ", "b "}), "a b");
  EXPECT_EQ(decoded(strip(3, 3), {"  ", "a"}), "a");
  EXPECT_EQ(decoded(sequence({fuse, strip(1, 0)}), {" a", " b"}), "a b");
  EXPECT_EQ(decoded(sequence({fuse, strip(2, 0)}), {" ", " ", " b"}), " b");
  EXPECT_EQ(
      decoded(sequence({fuse, strip(0, 2)}), {"a ", "b ", " ", " "}), "a b "
  );
}

TEST(Decoder, ReplaceInTokensOrTheWhole) {
  std::string replace =
      R"({"type":"Replace","pattern":{"String":"ab"},"content":"-"})";
  EXPECT_EQ(decoded(replace, {"a", "b", "ab"}), "ab-");
  EXPECT_EQ(
      decoded(sequence({fuse, replace}), {"xa", "b", "aa", "bb"}), "x-a-b"
  );
  std::string pattern =
      R"({"type":"Replace","pattern":{"Regex":"a+"},"content":"-"})";
  EXPECT_EQ(decoded(sequence({fuse, pattern}), {"xa", "aa", "b"}), "x-b");
}

TEST(Decoder, MetaspaceVanishesInTheFirstToken) {
  std::string always = R"({"type":"Metaspace","replacement":"▁"})";
  EXPECT_EQ(decoded(always, {"▁a▁", "▁b"}), "a b");
  std::string never =
      R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"never"})";
  EXPECT_EQ(decoded(never, {"▁a", "▁b"}), " a b");
}

TEST(Decoder, SentencePieceSequence) {
  std::string json = sequence({spaces, byte_fallback, fuse, strip(1, 0)});
  EXPECT_EQ(
      decoded(json, {"▁Hello", "▁", "<0xC3>", "<0xA9>", "▁"}), "Hello é "
  );
  EXPECT_EQ(decoded(json, {}), "");
}

TEST(Decoder, WordPiece) {
  std::string clean = R"({"type":"WordPiece","prefix":"##","cleanup":true})";
  EXPECT_EQ(decoded(clean, {"##a", "##b", "c", ".", "n't"}), "##ab c.n't");
  std::string plain = R"({"type":"WordPiece","prefix":"##","cleanup":false})";
  EXPECT_EQ(decoded(plain, {"a", ".", "##b"}), "a .b");
  // One token: the rules see it whole.
  EXPECT_EQ(decoded(sequence({fuse, clean}), {"a", " ", "."}), "a.");
}

TEST(Decoder, Ctc) {
  std::string ctc =
      R"({"type":"CTC","pad_token":"<p>","word_delimiter_token":"|",)"
      R"("cleanup":true})";
  EXPECT_EQ(decoded(ctc, {"a", "a", "<p>", "a", "|", "|", "b"}), "aa b");
}

TEST(Decoder, Bpe) {
  std::string bpe = R"({"type":"BPEDecoder","suffix":"</w>"})";
  EXPECT_EQ(decoded(bpe, {"a", "b</w>", "c", "d</w>"}), "ab cd");
  EXPECT_EQ(decoded(bpe, {"a</w>", "b"}), "a b");
  EXPECT_EQ(decoded(bpe, {}), "");
}

TEST(Decoder, UnknownTypeIsNamed) {
  EXPECT_ERROR(
      decoded(R"({"type":"Novel"})", {}),
      "the decoder type \"Novel\" is not supported"
  );
}

}  // namespace
}  // namespace mlxcel::test
