#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "mlxcel/tokenizer/unicode/code_set.h"

namespace mlxcel::tokenizer {

/// A cursor over a pattern, whose errors say where in which pattern.
class RegexReader {
 public:
  /// Throws Error(invalid_input) if the pattern is no valid UTF-8.
  explicit RegexReader(std::string_view pattern);

  bool at_end() const {
    return position_ == pattern_.size();
  }
  size_t position() const {
    return position_;
  }
  void rewind(size_t position) {
    position_ = position;
  }
  char32_t peek() const;
  bool peek_is(char c) const {
    return !at_end() && pattern_[position_] == c;
  }
  std::string_view rest() const {
    return pattern_.substr(position_);
  }
  /// The next character; an error at the end.
  char32_t take();
  /// Whether `text` comes next; then it is taken.
  bool take(std::string_view text);

  [[noreturn]] void malformed(const std::string& what) const;
  [[noreturn]] void unsupported(const std::string& what) const;

 private:
  std::string_view pattern_;
  size_t position_ = 0;
};

/// A bracketed class, read after its `[`.
CodeSet parse_regex_class(RegexReader& reader, bool ignore_case, int depth);

/// \s, \p{L} and the like, read after the backslash; empty if something else
/// comes next. \w differs between inside and outside of a class.
std::optional<CodeSet> take_class_escape(RegexReader& reader, bool in_class);

/// \n, \x{41}, \- and the like, read after the backslash.
char32_t take_character_escape(RegexReader& reader);

/// `set` and the other case of its ASCII letters. Throws Error(unsupported)
/// if it holds other letters with case.
CodeSet ignore_case(const RegexReader& reader, const CodeSet& set);

}  // namespace mlxcel::tokenizer
