#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace mlxcel::tokenizer {

/// A pattern of a tokenizer.json file. Immutable; safe to use from several
/// threads.
class Regex {
 public:
  struct Match {
    size_t begin;
    size_t end;
  };

  /// Compiles a pattern of Oniguruma's default syntax: to an automaton where
  /// that gives the same matches, else to PCRE2. Throws
  /// Error(invalid_input | unsupported).
  static std::shared_ptr<const Regex> compile(std::string_view pattern);
  /// The same, always by PCRE2.
  static std::shared_ptr<const Regex> compile_backtracking(
      std::string_view pattern
  );
  /// Matches `text` itself, which may be empty (then everywhere).
  static std::shared_ptr<const Regex> literal(std::string_view text);

  /// What a scan of `size` bytes may cost, in bytes looked at.
  static uint64_t max_effort(size_t size);
  /// Throws Error(invalid_input) if it was more.
  static void check_effort(uint64_t effort, size_t size);

  virtual ~Regex() = default;

  /// The leftmost match in valid UTF-8 that begins at or after `from`, a
  /// character boundary. Adds the bytes looked at to `effort`, which may not
  /// pass max_effort(text.size()): Error(invalid_input).
  virtual bool find(
      std::string_view text, size_t from, Match& match, uint64_t& effort
  ) const = 0;
};

/// All matches in a text from left to right. An empty match right after
/// another match is passed over.
class RegexScan {
 public:
  RegexScan(const Regex& regex, std::string_view text);

  /// Throws Error(invalid_input) where the pattern takes too much effort.
  bool next(Regex::Match& match);

 private:
  const Regex& regex_;
  std::string_view text_;
  size_t from_ = 0;
  size_t last_end_ = static_cast<size_t>(-1);
  uint64_t effort_ = 0;
};

}  // namespace mlxcel::tokenizer
