#pragma once

#include <cstddef>
#include <string_view>

#include "mlxcel/core/error.h"

namespace mlxcel::tokenizer {

/// How many bytes may be looked at to find the tokens that begin at each place
/// of a text: far above what vocabularies need, but linear in the text also
/// for tokens as long as it.
class MatchEffort {
 public:
  explicit MatchEffort(std::string_view text)
      : left_(text.size() * 1024 + (size_t{1} << 20)) {}

  /// One byte. Throws Error(invalid_input) when none is left.
  void spend() {
    if (--left_ == 0) {
      fail(
          ErrorCode::invalid_input,
          "[tokenizer] a text takes too long with tokens of such length"
      );
    }
  }

 private:
  size_t left_;
};

}  // namespace mlxcel::tokenizer
