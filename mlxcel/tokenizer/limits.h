#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mlxcel/core/json.h"
#include "mlxcel/tokenizer/post_processor.h"

namespace mlxcel::tokenizer {

/// What the file says of shortening and filling up; by default nothing.
struct Limits {
  enum class Strategy { longest_first, only_first, only_second };
  struct Truncation {
    uint64_t max_length;
    uint64_t stride;
    Strategy strategy;
    bool left;
  };
  struct Padding {
    std::optional<uint64_t> length;  // by default that of the longest
    uint64_t multiple_of;            // 0: any
    int32_t id;
    uint32_t type_id;
    bool left;
  };
  std::optional<Truncation> truncation;
  std::optional<Padding> padding;

  /// `added`: how many special tokens will be put around. Throws
  /// Error(invalid_input) where the strategy has no way.
  void truncate(std::vector<std::vector<TextToken>>& texts, size_t added) const;
  /// Throws Error(invalid_input) for a length beyond 2^24.
  void pad(Encoding& encoding) const;
};

std::optional<Limits::Truncation> read_truncation(const Json& json);
std::optional<Limits::Padding> read_padding(const Json& json);

}  // namespace mlxcel::tokenizer
