// GGUF files that try to break the converter: each gives an Error that names
// the file, and leaves nothing behind.

#include <gtest/gtest.h>

#include <filesystem>

#include "mlxcel/core/os.h"
#include "mlxcel/weights/convert/gguf/convert_gguf.h"
#include "mlxcel/weights/convert/gguf/gguf_model.h"
#include "mlxcel/weights/convert/gguf/gguf_tokenizer.h"
#include "tests/unit/convert/gguf_builder.h"
#include "tests/unit/support/expect_error.h"
#include "tests/unit/support/temporary_directory.h"

namespace mlxcel::convert {

namespace {

class HostileGguf : public ::testing::Test {
 protected:
  // Afresh each time: overwriting makes some file systems wait for the disk.
  std::string write(const std::string& bytes) {
    std::filesystem::remove(directory_ / "hostile.gguf");
    return directory_.write("hostile.gguf", bytes);
  }

  // The error's message; empty if the file converts.
  std::string convert(const std::string& bytes) {
    std::string file = write(bytes);
    std::string message;
    try {
      convert_gguf(file, directory_ / "out", {});
      std::filesystem::remove_all(directory_ / "out");
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::internal) << error.message();
      EXPECT_NE(error.message().find("hostile.gguf"), std::string::npos)
          << error.message();
      message = error.message();
    }
    EXPECT_EQ(
        os::list_directory(directory_.path()),
        std::vector<std::string>{"hostile.gguf"}
    );
    return message;
  }

  static std::string with(
      std::string bytes, const GgufBuilder::Field& field, uint64_t value
  ) {
    std::memcpy(bytes.data() + field.offset, &value, field.size);
    return bytes;
  }

  TemporaryDirectory directory_;
};

GgufBuilder small_model() {
  return tiny_model(
      {.layers = 1, .hidden = 32, .heads = 2, .kv_heads = 1, .intermediate = 32}
  );
}

bool has_suffix(const std::string& name, const char* suffix) {
  return name.ends_with(suffix);
}

}  // namespace

TEST_F(HostileGguf, TheUnspoiledFileConverts) {
  EXPECT_EQ(convert(small_model().build()), "");
}

TEST_F(HostileGguf, CutAtEveryLength) {
  GgufBuilder builder = small_model();
  std::string whole = builder.build();
  for (size_t length = 0; length < whole.size(); ++length) {
    // Inside the data only every tenth place: a cut there is a cut tensor.
    if (length > builder.data_start() + 100 && length % 10 != 0) {
      continue;
    }
    ASSERT_NE(convert(whole.substr(0, length)), "") << length;
  }
}

// Counts, lengths, dimensions, types and offsets, replaced one by one.
TEST_F(HostileGguf, EveryHeaderFieldReplaced) {
  GgufBuilder builder = small_model();
  std::string whole = builder.build();
  const uint64_t values[] = {
      0,
      7,
      99,
      whole.size(),
      0x7fffffff,
      0x80000000,
      0xffffffff,
      0x100000000,
      0x7fffffffffffffff,
      0x8000000000000000,
      0xffffffffffffffe0,
      0xffffffffffffffff,
  };
  for (const GgufBuilder::Field& field : builder.fields()) {
    for (uint64_t value : values) {
      uint64_t old = 0;
      std::memcpy(&old, whole.data() + field.offset, field.size);
      if (field.size == 4) {
        value &= 0xffffffff;
      }
      if (value == old) {
        continue;
      }
      ASSERT_NE(convert(with(whole, field, value)), "")
          << field.name << " = " << value;
    }
  }
}

// Any byte of the header may be anything: an Error or a plan.
TEST_F(HostileGguf, EveryHeaderByteReplaced) {
  GgufBuilder builder = small_model();
  std::string whole = builder.build();
  int refused = 0;
  for (size_t at = 0; at < builder.data_start(); ++at) {
    for (int value : {0x00, 0x41, 0xff}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(value);
      std::string file = write(bytes);
      try {
        GgufFile gguf = GgufFile::open(file);
        int64_t vocab = plan_model(gguf).parameters.vocab_size;
        tokenizer_json(gguf, read_tokenizer(gguf, vocab));
      } catch (const Error& error) {
        EXPECT_NE(error.code(), ErrorCode::internal) << error.message();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 2000);
}

TEST_F(HostileGguf, CountsBeyondTheFile) {
  GgufBuilder builder = small_model();
  std::string whole = builder.build();
  for (const GgufBuilder::Field& field : builder.fields()) {
    if (has_suffix(field.name, "count")) {
      EXPECT_NE(
          convert(with(whole, field, 1000000000000)).find("count"),
          std::string::npos
      ) << field.name;
    }
    if (has_suffix(field.name, "length")) {
      EXPECT_NE(
          convert(with(whole, field, 1000000000000))
              .find("the file ends after"),
          std::string::npos
      ) << field.name;
    }
  }
}

TEST_F(HostileGguf, TensorOffsets) {
  GgufBuilder builder = small_model();
  std::string whole = builder.build();
  for (const GgufBuilder::Field& field : builder.fields()) {
    if (!has_suffix(field.name, " offset")) {
      continue;
    }
    uint64_t old = 0;
    std::memcpy(&old, whole.data() + field.offset, sizeof(old));
    EXPECT_NE(
        convert(with(whole, field, old + 1)).find("no multiple of 32"),
        std::string::npos
    );
    EXPECT_NE(
        convert(with(whole, field, UINT64_MAX - 31)).find("pass the end"),
        std::string::npos
    );
    EXPECT_NE(
        convert(with(whole, field, whole.size() / 32 * 32))
            .find("pass the end"),
        std::string::npos
    );
  }
}

TEST_F(HostileGguf, DimensionsWhoseProductWraps) {
  GgufBuilder builder;
  builder.tensor(
      "t", GgmlType::f32, {int64_t{1} << 32, int64_t{1} << 32}, "data"
  );
  EXPECT_NE(
      convert(builder.build()).find("more elements than can be counted"),
      std::string::npos
  );
  GgufBuilder bytes;
  bytes.tensor("t", GgmlType::f32, {int64_t{1} << 62}, "data");
  EXPECT_NE(
      convert(bytes.build()).find("more bytes than can be counted"),
      std::string::npos
  );
  GgufBuilder ranks;
  ranks.tensor("t", GgmlType::f32, std::vector<int64_t>(5, 1), "data");
  EXPECT_NE(
      convert(ranks.build()).find("dimension count: 5"), std::string::npos
  );
  GgufBuilder negative;
  negative.tensor("t", GgmlType::f32, {-1}, "data");
  EXPECT_NE(convert(negative.build()).find("dimensions[0]"), std::string::npos);
}

TEST_F(HostileGguf, NamesAndKeys) {
  GgufBuilder name;
  name.tensor(std::string(65, 'n'), GgmlType::f32, {1}, "data");
  EXPECT_NE(convert(name.build()).find("65 bytes"), std::string::npos);
  GgufBuilder empty;
  empty.tensor("", GgmlType::f32, {1}, "data");
  EXPECT_NE(convert(empty.build()).find("tensor[0] name"), std::string::npos);
  GgufBuilder key;
  key.put("", uint32_t{1});
  EXPECT_NE(convert(key.build()).find("metadata[0] key"), std::string::npos);
  GgufBuilder control;
  control.put("general.architecture", "ll\x1b[31m\nama");
  std::string message = convert(control.build());
  EXPECT_NE(message.find("\\x1b"), std::string::npos);
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
}

TEST_F(HostileGguf, BooleansAndTypes) {
  GgufBuilder boolean;
  boolean.put("flag", GgufType::boolean, uint8_t{2});
  EXPECT_NE(
      convert(boolean.build()).find("neither 0 nor 1"), std::string::npos
  );
  GgufBuilder type;
  type.put("x", static_cast<GgufType>(13), uint32_t{0});
  EXPECT_NE(
      convert(type.build()).find("13 is no GGUF value type"), std::string::npos
  );
  GgufBuilder alignment = small_model();
  alignment.put("general.alignment", "32");
  EXPECT_NE(
      convert(alignment.build()).find("general.alignment"), std::string::npos
  );
}

// Two gigabytes of layers, heads or vocabulary that the file doesn't hold.
TEST_F(HostileGguf, SizesThatTheTensorsDoNotHave) {
  for (const char* key :
       {"llama.block_count",
        "llama.embedding_length",
        "llama.feed_forward_length",
        "llama.attention.head_count",
        "llama.attention.head_count_kv",
        "llama.vocab_size",
        "llama.rope.dimension_count",
        "llama.attention.key_length"}) {
    for (uint32_t value : {0u, 3u, 99999u, 0x3fffffffu, 0xffffffffu}) {
      GgufBuilder builder = small_model();
      builder.replace(key, value);
      EXPECT_NE(convert(builder.build()), "") << key << " " << value;
    }
  }
}

}  // namespace mlxcel::convert
