#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace mlxcel::tokenizer {

/// How much text a tokenizer encodes at once.
struct ChunkLimits {
  size_t characters;
  size_t run;  // of characters that are all spaces, or all not
};

/// Cuts valid UTF-8 into chunks of at most so many characters, and those
/// where a run exceeds its limit (tokenization_kimi.py, _encode_text_piece).
std::vector<std::string_view> cut_text(
    std::string_view text, const ChunkLimits& limits
);

}  // namespace mlxcel::tokenizer
