#include "tests/unit/tokenizer/support/tokenizer_files.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "mlxcel/core/base64.h"
#include "mlxcel/tokenizer/split/byte_level.h"

namespace mlxcel::test {

std::string tiktoken_ranks() {
  std::string text;
  int rank = 0;
  for (; rank < 256; ++rank) {
    std::string byte(1, static_cast<char>(rank));
    text += encode_base64(byte) + " " + std::to_string(rank) + "\n";
  }
  for (const char* token : {"ab", "abc", "bc"}) {
    text += encode_base64(token) + " " + std::to_string(rank++) + "\n";
  }
  return text;
}

void write_qwen2_files(
    const TemporaryDirectory& directory, const std::string& added_tokens
) {
  nlohmann::ordered_json vocab;
  for (int b = 0; b < 256; ++b) {
    std::string spelling;
    tokenizer::append_byte_level(
        spelling, std::string(1, static_cast<char>(b))
    );
    vocab[spelling] = b;
  }
  vocab["ab"] = 256;
  directory.write("vocab.json", vocab.dump());
  directory.write("merges.txt", "#version: 0.2\na b\n");
  directory.write(
      "tokenizer_config.json",
      R"({"tokenizer_class":"Qwen2Tokenizer","added_tokens_decoder":)" +
          added_tokens + "}"
  );
}

namespace {

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value > 0x7f; value >>= 7) {
    bytes += static_cast<char>(value | 0x80);
  }
  return bytes + static_cast<char>(value);
}

std::string number(uint32_t field, uint64_t value) {
  return varint(field << 3) + varint(value);
}

std::string block(uint32_t field, const std::string& bytes) {
  return varint(field << 3 | 2) + varint(bytes.size()) + bytes;
}

}  // namespace

std::string SentencePieceBuilder::bytes() const {
  std::string bytes;
  for (const auto& piece : pieces) {
    std::string score(sizeof(float), 0);
    std::memcpy(score.data(), &piece.score, sizeof(float));
    bytes += block(
        1,
        block(1, piece.text) + varint(2 << 3 | 5) + score +
            number(3, static_cast<uint64_t>(piece.type))
    );
  }
  bytes += block(2, number(3, model_type) + number(35, byte_fallback ? 1 : 0));
  bytes += block(
      3,
      block(2, char_map) + number(3, add_dummy_prefix ? 1 : 0) +
          number(4, remove_extra_whitespaces ? 1 : 0)
  );
  return bytes;
}

std::string plamo_rows() {
  std::string rows;
  for (const char* name : {"unk", "bos", "eos", "pad"}) {
    rows += fmt::format("[\"<|plamo:{}|>\", 0.0, \"CONTROL\"]\n", name);
  }
  for (unsigned b = 0; b < 256; ++b) {
    rows += fmt::format("[\"<0x{:02X}>\", -100, \"BYTE\"]\n", b);
  }
  return rows;
}

}  // namespace mlxcel::test
