// The SafeTensors contract of files from strangers: one test per attack.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <random>

#include "mlxcel/core/fault_guard.h"
#include "mlxcel/weights/safetensors.h"
#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

std::vector<TensorEntry> parse(const std::string& file) {
  return read_safetensors_header(
      std::as_bytes(std::span(file.data(), file.size())), "f.safetensors"
  );
}

std::string with_length(uint64_t length, const std::string& rest) {
  std::string file = raw_file("", rest);
  std::memcpy(file.data(), &length, sizeof(length));
  return file;
}

// A header of one F32 tensor "w" with the given shape and offsets.
std::string one(
    const std::string& shape,
    const std::string& offsets,
    size_t payload,
    const std::string& dtype = "F32"
) {
  return raw_file(
      fmt::format(
          R"({{"w":{{"dtype":"{}","shape":[{}],"data_offsets":[{}]}}}})",
          dtype,
          shape,
          offsets
      ),
      std::string(payload, '\0')
  );
}

// Two U8 tensors "a" and "b" with the given offsets.
std::string two(
    uint64_t a0, uint64_t a1, uint64_t b0, uint64_t b1, size_t payload
) {
  std::string format =
      R"("{}":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}})";
  return raw_file(
      "{" + fmt::format(fmt::runtime(format), "a", a1 - a0, a0, a1) + "," +
          fmt::format(fmt::runtime(format), "b", b1 - b0, b0, b1) + "}",
      std::string(payload, '\0')
  );
}

std::string named(const std::string& name) {
  return raw_file(
      R"({")" + name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
      "x"
  );
}

std::string repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) {
    out += text;
  }
  return out;
}

struct Attack {
  std::string name;
  std::string file;
  std::vector<std::string> message;  // beside the file's name
};

std::vector<Attack> attacks() {
  const std::string good =
      R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  const std::string deep(100000, '[');
  return {
      {"Empty", "", {"0 bytes"}},
      {"OneByte", "x", {"1 bytes"}},
      {"SevenBytes", "1234567", {"7 bytes"}},
      {"ZeroLength", with_length(0, ""), {"header of 0 bytes"}},
      {"HugeLength", with_length(uint64_t{1} << 63, "{}"), {"9223372036854"}},
      {"AllOnesLength", with_length(UINT64_MAX, "{}"), {"1844674407370955"}},
      {"LengthAboveLimit", with_length(100000001, "{}"), {"100000001"}},
      {"LengthBeyondFile", with_length(3, "{}"), {"truncated"}},
      {"NotAnObject", raw_file("[]", ""), {"'{'"}},
      {"LeadingSpace", raw_file(" {}", ""), {"'{'"}},
      {"BinaryHeader", raw_file("\x7f\x45\x4c\x46", ""), {"'{'"}},
      {"ByteOrderMark", raw_file("\xef\xbb\xbf{}", ""), {"'{'"}},
      {"OpenObject", raw_file("{", ""), {"header ends"}},
      {"OpenString", raw_file(R"({"w)", ""), {"inside a string"}},
      {"TextAfterObject", raw_file(good + "}x", "x"), {"after the object"}},
      {"TrailingComma", raw_file(good + ",}", "x"), {"tensor name"}},
      {"NulPadding",
       raw_file(good + "}" + std::string(3, '\0'), "x"),
       {"text"}},
      {"DeepName", raw_file("{" + deep, ""), {"tensor name"}},
      {"DeepEntry", raw_file(R"({"w":)" + deep, ""), {"\"w\"", "'{'"}},
      {"DeepShape", one(deep, "0,4", 4), {"\"w\"", "shape"}},
      {"DeepMetadata",
       raw_file(R"({"__metadata__":{"a":)" + deep, ""),
       {"a string"}},
      {"DeepObjects", raw_file(repeat(R"({"a":)", 100000), ""), {"field"}},
      {"DuplicateName",
       raw_file(good + "," + good.substr(1) + "}", "x"),
       {"\"w\"", "twice"}},
      {"DuplicateNameEscaped",
       raw_file(
           good +
               R"(,"\u0077":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
           "xy"
       ),
       {"\"w\"", "twice"}},
      {"DuplicateMetadata",
       raw_file(R"({"__metadata__":{},"__metadata__":{}})", ""),
       {"__metadata__", "twice"}},
      {"DuplicateMetadataKey",
       raw_file(R"({"__metadata__":{"a":"1","a":"2"}})", ""),
       {"\"a\""}},
      {"DuplicateField",
       raw_file(
           R"({"w":{"dtype":"U8","dtype":"U8","shape":[1],)"
           R"("data_offsets":[0,1]}})",
           "x"
       ),
       {"\"w\"", "\"dtype\""}},
      {"UnknownField",
       raw_file(
           R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}})", "x"
       ),
       {"\"w\"", "\"x\""}},
      {"MissingDtype",
       raw_file(R"({"w":{"shape":[1],"data_offsets":[0,1]}})", "x"),
       {"\"w\"", "dtype is missing"}},
      {"MissingShape",
       raw_file(R"({"w":{"dtype":"U8","data_offsets":[0,1]}})", "x"),
       {"\"w\"", "shape is missing"}},
      {"MissingOffsets",
       raw_file(R"({"w":{"dtype":"U8","shape":[1]}})", "x"),
       {"\"w\"", "data_offsets is missing"}},
      {"EmptyEntry", raw_file(R"({"w":{}})", ""), {"\"w\""}},
      {"EntryIsNull", raw_file(R"({"w":null})", ""), {"\"w\""}},
      {"NulInName", named("a\\u0000b"), {"control character"}},
      {"NewlineInName", named("a\\nb"), {"control character"}},
      {"DeleteInName", named("a\x7f"), {"control character"}},
      {"RawControlInName", named("a\x01"), {"control character"}},
      {"RawNulInName", named(std::string("a\0b", 3)), {"control character"}},
      {"StrayContinuation", named("a\x80"), {"UTF-8"}},
      {"OverlongSlash", named("a\xc0\xaf"), {"UTF-8"}},
      {"OverlongThree", named("a\xe0\x80\xaf"), {"UTF-8"}},
      {"EncodedSurrogate", named("a\xed\xa0\x80"), {"UTF-8"}},
      {"BeyondUnicode", named("a\xf4\x90\x80\x80"), {"UTF-8"}},
      {"CutSequence", named("a\xe2\x82"), {"UTF-8"}},
      {"LoneHighSurrogate", named("\\ud800"), {"surrogate"}},
      {"LoneLowSurrogate", named("\\udc00"), {"surrogate"}},
      {"TwoHighSurrogates", named("\\ud800\\ud800"), {"surrogate"}},
      {"BadEscape", named("\\x41"), {"escape"}},
      {"BadHex", named("\\u12g4"), {"hexadecimal"}},
      {"NegativeDim", one("-1", "0,4", 4), {"\"w\"", "shape", "-1"}},
      {"FractionalDim", one("1.0", "0,4", 4), {"\"w\"", "shape", "1.0"}},
      {"ExponentDim", one("1e0", "0,4", 4), {"\"w\"", "1e0"}},
      {"StringDim", one("\"1\"", "0,4", 4), {"\"w\"", "shape"}},
      {"NullDim", one("null", "0,4", 4), {"\"w\"", "shape"}},
      {"LeadingZeroDim", one("01", "0,4", 4), {"\"w\"", "01"}},
      {"DimBeyond64Bits",
       one("18446744073709551616", "0,4", 4),
       {"\"w\"", "64 bits"}},
      {"DimBeyondSigned",
       one("9223372036854775808", "0,4", 4),
       {"\"w\"", "9223372036854775808"}},
      {"HugeDim", one("4294967296", "0,4", 4), {"\"w\"", "17179869184"}},
      {"ManyDims",
       one("1" + repeat(",1", 9999), "0,4", 4),
       {"\"w\"", "16 dimensions"}},
      {"ProductOverflow",
       one("4294967296,4294967296,4", "0,4", 4),
       {"\"w\"", "overflows"}},
      {"ProductWrapsToSize",
       one("4611686018427387905", "0,4", 4),  // times 4 is 4 modulo 2^64
       {"\"w\"", "overflows"}},
      {"OverflowBesideZero",
       one("4294967296,4294967296,0", "0,0", 0),
       {"\"w\"", "overflows"}},
      {"OneOffset", one("1", "4", 4), {"\"w\"", "','"}},
      {"ThreeOffsets", one("1", "0,4,8", 4), {"\"w\"", "']'"}},
      {"NegativeOffset", one("1", "-4,0", 4), {"\"w\"", "data_offsets"}},
      {"ReversedOffsets", one("1", "4,0", 4), {"\"w\"", "backwards"}},
      {"WrappingOffsets",
       one("1", "18446744073709551612,0", 4),
       {"\"w\"", "backwards"}},
      {"WrappingEnd",
       one("1", "18446744073709551611,18446744073709551615", 4),
       {"\"w\"", "truncated"}},
      {"PastTheEnd", one("2", "0,8", 4), {"\"w\"", "truncated"}},
      {"SizeTooSmall", one("2", "0,4", 4), {"\"w\"", "need 8"}},
      {"SizeTooLarge", one("1", "0,8", 8), {"\"w\"", "need 4"}},
      {"Overlap", two(0, 4, 2, 6, 6), {"\"b\"", "inside"}},
      {"SameBytes", two(0, 4, 0, 4, 4), {"inside"}},
      {"Hole", two(0, 4, 5, 8, 8), {"\"b\"", "hole"}},
      {"HoleAtStart", two(1, 4, 4, 8, 8), {"\"a\"", "hole"}},
      {"TrailingBytes", two(0, 4, 4, 8, 9), {"1 bytes after"}},
      {"PayloadOfNoTensor", raw_file("{}", "x"), {"1 bytes after"}},
      {"LfsPointer",
       "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 4\n",
       {"Git LFS pointer"}},
      {"SubByteDtype", one("2", "0,1", 1, "F4"), {"\"w\"", "\"F4\""}},
      {"SubByteDtypeWithinAByte",
       one("1", "0,1", 1, "F4"),
       {"\"w\"", "\"F4\""}},
      {"EntryIsList",
       raw_file(R"({"w":["U8",[1],[0,1]]})", "x"),
       {"\"w\"", "'{'"}},
      {"DtypeIsObject",
       raw_file(
           R"({"w":{"dtype":{"U8":null},"shape":[1],"data_offsets":[0,1]}})",
           "x"
       ),
       {"\"w\"", "dtype"}},
      {"UnknownDtype", one("1", "0,4", 4, "F31"), {"\"w\"", "\"F31\""}},
      {"LowerCaseDtype", one("1", "0,4", 4, "f32"), {"\"w\"", "\"f32\""}},
      {"DtypeIsNumber",
       raw_file(R"({"w":{"dtype":1,"shape":[],"data_offsets":[0,1]}})", "x"),
       {"\"w\"", "dtype"}},
      {"MetadataIsList", raw_file(R"({"__metadata__":[]})", ""), {"'{'"}},
      {"MetadataIsString", raw_file(R"({"__metadata__":"a"})", ""), {"'{'"}},
      {"MetadataValueIsNumber",
       raw_file(R"({"__metadata__":{"a":1}})", ""),
       {"__metadata__", "a string"}},
      {"MetadataValueIsObject",
       raw_file(R"({"__metadata__":{"a":{}}})", ""),
       {"__metadata__", "a string"}},
      {"InvalidUtf8InMetadata",
       raw_file("{\"__metadata__\":{\"a\":\"\xff\"}}", ""),
       {"UTF-8"}},
  };
}

class SafetensorsAttack : public testing::TestWithParam<Attack> {};

TEST_P(SafetensorsAttack, IsRefused) {
  std::vector<std::string> parts = GetParam().message;
  parts.push_back("f.safetensors");
  expect_error([] { parse(GetParam().file); }, ErrorCode::invalid_input, parts);
}

INSTANTIATE_TEST_SUITE_P(
    Each,
    SafetensorsAttack,
    testing::ValuesIn(attacks()),
    [](const auto& attack) { return attack.param.name; }
);

TEST(SafetensorsHostile, EveryTruncationIsRefused) {
  std::string file = safetensors_file(
      {{"a", "F32", {2, 2}, std::string(16, 'a')},
       {"b", "U8", {3}, std::string(3, 'b')}}
  );
  ASSERT_EQ(parse(file).size(), 2u);
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_THROW(parse(file.substr(0, size)), Error) << size;
  }
}

// Whatever bytes change, the result is an Error or extents that lie in the
// file, one after another.
TEST(SafetensorsHostile, MutationsNeverGiveABadExtent) {
  std::string good = safetensors_file(
      {{"model.a", "F32", {2, 2}, std::string(16, 'a')},
       {"model.b", "U8", {3}, std::string(3, 'b')},
       {"model.c", "BF16", {}, std::string(2, 'c')},
       {"model.d", "I64", {0, 4}, ""}},
      5
  );
  std::mt19937 random(1);
  const std::string alphabet = "{}[]\":,0123456789eE+-.\\u\x80\xff \nFU8";
  int accepted = 0;
  for (int i = 0; i < 50000; ++i) {
    std::string file = good;
    for (unsigned n = 1 + random() % 3; n > 0; --n) {
      size_t at = random() % file.size();
      switch (random() % 3) {
        case 0:
          file[at] = alphabet[random() % alphabet.size()];
          break;
        case 1:
          file.erase(at, 1 + random() % 4);
          break;
        default:
          file.insert(at, 1, alphabet[random() % alphabet.size()]);
      }
    }
    try {
      uint64_t at = 0;
      for (const TensorEntry& entry : parse(file)) {
        ASSERT_TRUE(at == 0 || entry.begin == at);
        ASSERT_LE(entry.begin, entry.end);
        ASSERT_LE(entry.end, file.size());
        at = entry.end;
      }
      ++accepted;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(SafetensorsHostile, HundredThousandTensorsAreQuick) {
  std::vector<FileTensor> tensors;
  for (int i = 0; i < 100000; ++i) {
    tensors.push_back(
        {fmt::format("model.layers.{}.mlp.experts.gate_proj.weight", i),
         "U8",
         {1, 2},
         "xy"}
    );
  }
  std::string file = safetensors_file(tensors);
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(parse(file).size(), 100000u);
  auto spent = std::chrono::steady_clock::now() - start;
  RecordProperty(
      "milliseconds",
      static_cast<int>(
          std::chrono::duration_cast<std::chrono::milliseconds>(spent).count()
      )
  );
  // 100 ms on a machine of today; generous for sanitizers and busy hosts.
  EXPECT_LT(spent, std::chrono::seconds(3));
}

void expect_not_loaded(
    const std::string& path, const std::vector<std::string>& parts
) {
  WeightMap weights;
  expect_error(
      [&] { load_safetensors(path, weights); }, ErrorCode::invalid_input, parts
  );
}

TEST(SafetensorsHostile, DirectoryInPlaceOfAFile) {
  TempDir dir;
  std::filesystem::create_directory(dir.at("m.safetensors"));
  expect_not_loaded(dir.at("m.safetensors"), {"m.safetensors", "regular file"});
}

TEST(SafetensorsHostile, FifoInPlaceOfAFile) {
  TempDir dir;
  ASSERT_EQ(::mkfifo(dir.at("m.safetensors").c_str(), 0600), 0);
  expect_not_loaded(dir.at("m.safetensors"), {"m.safetensors", "regular file"});
}

TEST(SafetensorsHostile, DeviceInPlaceOfAFile) {
  expect_not_loaded("/dev/zero", {"/dev/zero", "regular file"});
}

TEST(SafetensorsHostile, SparseFileOfHugeClaims) {
  TempDir dir;
  std::string path = dir.write("m.safetensors", with_length(99999999, "{"));
  std::filesystem::resize_file(path, uint64_t{1} << 40);
  expect_not_loaded(path, {path});
}

TEST(SafetensorsHostile, FileThatShrinksAfterLoadingMarksItsWeights) {
  FaultGuard::install();
  TempDir dir;
  std::string path = dir.write(
      "m.safetensors",
      safetensors_file({{"w", "U8", {100000}, std::string(100000, 'w')}})
  );
  WeightMap weights;
  load_safetensors(path, weights);
  const Weight& weight = weights.at("w");
  EXPECT_FALSE(weight.source->faulted());
  EXPECT_EQ(static_cast<char>(weight.bytes()[99999]), 'w');
  std::filesystem::resize_file(path, 4096);
  volatile std::byte last = weight.bytes()[99999];
  EXPECT_EQ(static_cast<int>(last), 0);
  EXPECT_TRUE(weight.source->faulted());
}

}  // namespace
}  // namespace mlxcel::test
