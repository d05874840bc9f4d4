#pragma once

#include <string>

#include "mlxcel/core/error.h"

namespace mlxcel {

/// A chat template that cannot be parsed or rendered. The message names the
/// template, line and column; reason() is the cause alone. Code: usage if the
/// template itself refuses the conversation, else invalid_input.
class TemplateError : public Error {
 public:
  enum class Kind {
    syntax,    // not valid in the template language
    failure,   // failed while it ran
    rejected,  // called raise_exception; reason() is its message
    limit,     // exceeded TemplateLimits
  };

  /// Line and column count from 1, columns in characters.
  TemplateError(
      Kind kind,
      const std::string& name,
      int line,
      int column,
      std::string reason
  );

  Kind kind() const noexcept {
    return kind_;
  }
  int line() const noexcept {
    return line_;
  }
  int column() const noexcept {
    return column_;
  }
  const std::string& reason() const noexcept {
    return reason_;
  }

 private:
  Kind kind_;
  int line_;
  int column_;
  std::string reason_;
};

}  // namespace mlxcel
