#pragma once

#include <string>
#include <vector>

#include "mlxcel/tokenizer/files/sentencepiece_file.h"
#include "tests/unit/support/temporary_directory.h"

namespace mlxcel::test {

/// Ranks of the 256 bytes in order, each the id of its byte, then of the
/// tokens "ab" (256), "abc" (257) and "bc" (258).
std::string tiktoken_ranks();
/// vocab.json and merges.txt of the byte-level alphabet, ids in order of
/// bytes, then "ab" (256); with a tokenizer_config.json of Qwen2.
void write_qwen2_files(
    const TemporaryDirectory& directory, const std::string& added_tokens
);
/// A tokenizer.model file.
struct SentencePieceBuilder {
  std::vector<tokenizer::SentencePieceFile::Piece> pieces;
  uint64_t model_type = 1;
  bool byte_fallback = false;
  std::string char_map;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;

  std::string bytes() const;
};

/// A tokenizer.jsonl file: PLaMo's four special tokens, then the 256 bytes.
std::string plamo_rows();

}  // namespace mlxcel::test
