#pragma once

#include <string>

#include "mlxcel/core/json.h"
#include "mlxcel/tokenizer/normalize/text.h"

namespace mlxcel::tokenizer {

/// The Metaspace pre-tokenizer and decoder: spaces become a visible mark,
/// usually U+2581, before which a text is cut.
class Metaspace {
 public:
  /// When a mark is put in front of a text that lacks one.
  enum class Scheme { always, first, never };

  /// Throws Error(invalid_input) naming the field.
  explicit Metaspace(const Json& json);

  void split(const Piece& piece, PieceSink& sink) const;

  const std::string& mark() const {
    return mark_;
  }
  Scheme scheme() const {
    return scheme_;
  }

 private:
  std::string mark_;  // one character
  Scheme scheme_ = Scheme::always;
  bool split_;
};

}  // namespace mlxcel::tokenizer
