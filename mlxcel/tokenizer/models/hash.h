#pragma once

#include <cstdint>
#include <string_view>

namespace mlxcel::tokenizer {

/// Hashes with a secret of this process, so that no file can aim at
/// collisions.
uint64_t hash_text(std::string_view text);
uint64_t hash_pair(uint32_t a, uint32_t b);

}  // namespace mlxcel::tokenizer
