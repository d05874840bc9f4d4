#include <gtest/gtest.h>

#include "tests/unit/support/expect_error.h"
#include "tests/unit/support/temporary_directory.h"
#include "tests/unit/tokenizer/support/tokenizer_file.h"

namespace mlxcel::test {
namespace {

using Ids = std::vector<int32_t>;
using Ranges = std::vector<ByteRange>;

/// Words of a, b and é in byte-level or plain letters.
TokenizerFile small_file() {
  TokenizerFile file;
  file.model = bpe_model({"<s>", "</s>", "a", "b", "ab", "é", "Ġ"}, {"a b"});
  file.post_processor =
      R"({"type":"BertProcessing","sep":["</s>",1],"cls":["<s>",0]})";
  return file;
}

TEST(Offsets, CountBytesAndCharacters) {
  std::string text = "abéb";
  Encoding encoding = small_file().load()->encode_with_offsets(text);
  EXPECT_EQ(encoding.ids, (Ids{0, 4, 5, 3, 1}));
  EXPECT_EQ(encoding.offsets, (Ranges{{0, 0}, {0, 2}, {2, 4}, {4, 5}, {0, 0}}));
  EXPECT_EQ(
      character_offsets(text, encoding.offsets),
      (Ranges{{0, 0}, {0, 2}, {2, 3}, {3, 4}, {0, 0}})
  );
}

TEST(Offsets, SameIdsAsWithout) {
  auto tokenizer = small_file().load();
  EXPECT_EQ(
      tokenizer->encode("babéab"), tokenizer->encode_with_offsets("babéab").ids
  );
}

TEST(Offsets, NormalizationKeepsTheOrigin) {
  TokenizerFile file = small_file();
  file.post_processor = "null";
  file.normalizer = R"({"type":"NFC"})";
  Encoding encoding = file.load()->encode_with_offsets(
      "ae\xcc\x81"
      "b"
  );
  EXPECT_EQ(encoding.ids, (Ids{2, 5, 3}));
  EXPECT_EQ(encoding.offsets[0], (ByteRange{0, 1}));
  EXPECT_EQ(encoding.offsets[2], (ByteRange{4, 5}));
}

TEST(Offsets, SpacesAreTrimmed) {
  TokenizerFile file = small_file();
  file.pre_tokenizer =
      R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true})";
  file.post_processor =
      R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true})";
  Encoding encoding = file.load()->encode_with_offsets("a b");
  EXPECT_EQ(encoding.ids, (Ids{6, 2, 6, 3}));
  EXPECT_EQ(encoding.offsets, (Ranges{{0, 0}, {0, 1}, {2, 2}, {2, 3}}));
}

TEST(Pairs, BertAndRoberta) {
  TokenizerFile file = small_file();
  Encoding bert = file.load()->encode_pair("a", "b");
  EXPECT_EQ(bert.ids, (Ids{0, 2, 1, 3, 1}));
  EXPECT_EQ(bert.type_ids, (std::vector<uint32_t>{0, 0, 0, 1, 1}));
  file.post_processor =
      R"({"type":"RobertaProcessing","sep":["</s>",1],"cls":["<s>",0],)"
      R"("trim_offsets":true,"add_prefix_space":true})";
  Encoding roberta = file.load()->encode_pair("a", "b");
  EXPECT_EQ(roberta.ids, (Ids{0, 2, 1, 1, 3, 1}));
  EXPECT_EQ(roberta.type_ids, (std::vector<uint32_t>(6, 0)));
  EncodeOptions plain;
  plain.add_special = false;
  EXPECT_EQ(file.load()->encode_pair("a", "b", plain).ids, (Ids{2, 3}));
}

TEST(Pairs, TemplatesMayTurnTheTexts) {
  TokenizerFile file = small_file();
  file.post_processor =
      R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"A",)"
      R"("type_id":0}}],"pair":[{"Sequence":{"id":"B","type_id":2}},)"
      R"({"SpecialToken":{"id":"x","type_id":3}},{"Sequence":{"id":"A",)"
      R"("type_id":0}}],"special_tokens":{"x":{"id":"x","ids":[1,0],)"
      R"("tokens":["</s>","<s>"]}}})";
  Encoding encoding = file.load()->encode_pair("a", "b");
  EXPECT_EQ(encoding.ids, (Ids{3, 1, 0, 2}));
  EXPECT_EQ(encoding.type_ids, (std::vector<uint32_t>{2, 3, 3, 0}));
}

std::shared_ptr<const Tokenizer> limited(const std::string& limits) {
  std::string text = small_file().text();
  std::string none = R"("truncation":null,"padding":null)";
  text.replace(text.find(none), none.size(), limits);
  TemporaryDirectory directory;
  return Tokenizer::from_json(directory.write("tokenizer.json", text));
}

std::string truncation(const std::string& fields) {
  return R"("truncation":{)" + fields + R"(},"padding":null)";
}

std::string padding(const std::string& fields) {
  return R"("truncation":null,"padding":{"pad_token":"b",)" + fields + "}";
}

EncodeOptions as_the_file_says() {
  EncodeOptions options;
  options.truncate = true;
  options.pad = true;
  return options;
}

TEST(Truncation, OnlyWhenAskedFor) {
  auto tokenizer = limited(truncation(
      R"("direction":"left","max_length":4,"strategy":"LongestFirst",)"
      R"("stride":0)"
  ));
  EXPECT_EQ(tokenizer->encode("aaab"), (Ids{0, 2, 2, 4, 1}));
  EXPECT_EQ(tokenizer->encode_with_offsets("aaab").ids.size(), 5u);
  Encoding cut = tokenizer->encode_with_offsets("aaab", as_the_file_says());
  EXPECT_EQ(cut.ids, (Ids{0, 2, 4, 1}));
  EXPECT_EQ(tokenizer->encode("aaab", as_the_file_says()), cut.ids);
  EXPECT_EQ(cut.offsets[1], (ByteRange{1, 2}));
}

TEST(Truncation, OfPairs) {
  auto longest = limited(
      truncation(R"("max_length":6,"strategy":"LongestFirst","stride":0)")
  );
  EXPECT_EQ(
      longest->encode_pair("aaaa", "b", as_the_file_says()).ids,
      (Ids{0, 2, 2, 1, 3, 1})
  );
  auto second =
      limited(truncation(R"("max_length":6,"strategy":"OnlySecond","stride":0)")
      );
  EXPECT_EQ(
      second->encode_pair("aa", "bbb", as_the_file_says()).ids,
      (Ids{0, 2, 2, 1, 3, 1})
  );
  EXPECT_ERROR(
      second->encode_with_offsets("aaaaaaa", as_the_file_says()),
      "no second text"
  );
  EXPECT_ERROR(
      second->encode_pair("aaaaaaa", "b", as_the_file_says()), "too short"
  );
}

TEST(Truncation, ProblemsAreNamed) {
  EXPECT_ERROR(
      limited(truncation(R"("max_length":-1)")), "truncation.max_length"
  );
  EXPECT_ERROR(
      limited(truncation(R"("max_length":1,"stride":0,"strategy":"Best")")),
      "truncation.strategy"
  );
  auto narrow = limited(
      truncation(R"("max_length":1,"strategy":"LongestFirst","stride":0)")
  );
  EXPECT_ERROR(narrow->encode_with_offsets("a", as_the_file_says()), "no room");
  auto wide = limited(
      truncation(R"("max_length":4,"strategy":"LongestFirst","stride":2)")
  );
  EXPECT_ERROR(wide->encode_with_offsets("aaaa", as_the_file_says()), "stride");
}

TEST(Padding, FillsUp) {
  auto fixed =
      limited(padding(R"("strategy":{"Fixed":6},"direction":"Left","pad_id":3,)"
                      R"("pad_type_id":7,"pad_to_multiple_of":null)"));
  EXPECT_EQ(fixed->encode("a"), (Ids{0, 2, 1}));
  Encoding encoding = fixed->encode_with_offsets("a", as_the_file_says());
  EXPECT_EQ(encoding.ids, (Ids{3, 3, 3, 0, 2, 1}));
  EXPECT_EQ(encoding.attention, (std::vector<uint8_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(encoding.type_ids, (std::vector<uint32_t>{7, 7, 7, 0, 0, 0}));
  auto multiple = limited(
      padding(R"("strategy":"BatchLongest","direction":"Right","pad_id":3,)"
              R"("pad_type_id":0,"pad_to_multiple_of":4)")
  );
  EXPECT_EQ(
      multiple->encode_with_offsets("a", as_the_file_says()).ids,
      (Ids{0, 2, 1, 3})
  );
}

TEST(Padding, HasALimit) {
  for (const char* size :
       {R"("strategy":{"Fixed":1000000000},"pad_to_multiple_of":null)",
        R"("strategy":"BatchLongest","pad_to_multiple_of":9000000000000000000)"}) {
    auto tokenizer = limited(padding(
        size + std::string(R"(,"direction":"Right","pad_id":3,"pad_type_id":0)")
    ));
    EXPECT_ERROR(
        tokenizer->encode_with_offsets("a", as_the_file_says()), "padding"
    );
  }
}

}  // namespace
}  // namespace mlxcel::test
