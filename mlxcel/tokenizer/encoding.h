#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mlxcel {

/// Which added tokens are looked for in a text: `ordinary` leaves out special
/// ones. The spelling of others is text.
enum class FindAdded { all, ordinary, none };

struct EncodeOptions {
  /// Put the special tokens around the text that the tokenizer adds by
  /// itself (a BOS, say).
  bool add_special = true;
  FindAdded find = FindAdded::all;
  /// Shorten and fill up as the file says. Generation and embeddings don't.
  bool truncate = false;
  bool pad = false;
};

/// A part of a text from byte `begin` to before byte `end`.
struct ByteRange {
  size_t begin;
  size_t end;
  bool operator==(const ByteRange&) const = default;
};

/// Ids and what they stand for, all of the same length.
struct Encoding {
  std::vector<int32_t> ids;
  /// Bytes of the text, or of the second of a pair; (0, 0) for what the
  /// tokenizer has added. A token that stands for a part of a character has
  /// all of it.
  std::vector<ByteRange> offsets;
  /// Token types: mostly 0 for the first text and 1 for the second.
  std::vector<uint32_t> type_ids;
  /// 1, and 0 for padding.
  std::vector<uint8_t> attention;
};

}  // namespace mlxcel
