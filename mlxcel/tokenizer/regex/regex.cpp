#include "mlxcel/tokenizer/regex/regex.h"

#include <fmt/format.h>

#include <string>

#include "mlxcel/core/error.h"
#include "mlxcel/tokenizer/regex/regex_dfa.h"
#include "mlxcel/tokenizer/regex/regex_pcre.h"
#include "mlxcel/tokenizer/regex/regex_syntax.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

class LiteralRegex : public Regex {
 public:
  explicit LiteralRegex(std::string_view text) : text_(text) {}

  bool find(std::string_view text, size_t from, Match& match, uint64_t& effort)
      const override {
    size_t at = text.find(text_, from);
    // An empty text is found between bytes too.
    while (text_.empty() && at < text.size() &&
           (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) {
      ++at;
    }
    effort += (at == std::string_view::npos ? text.size() : at) - from;
    match = {at, at + text_.size()};
    return at != std::string_view::npos;
  }

 private:
  std::string text_;
};

}  // namespace

std::shared_ptr<const Regex> Regex::compile(std::string_view pattern) {
  RegexNode tree = parse_regex(pattern);
  if (std::shared_ptr<const Regex> automaton = compile_dfa(tree)) {
    return automaton;
  }
  return compile_pcre(tree, pattern);
}

std::shared_ptr<const Regex> Regex::compile_backtracking(
    std::string_view pattern
) {
  return compile_pcre(parse_regex(pattern), pattern);
}

std::shared_ptr<const Regex> Regex::literal(std::string_view text) {
  return std::make_shared<LiteralRegex>(text);
}

uint64_t Regex::max_effort(size_t size) {
  return (uint64_t{1} << 22) + 256 * uint64_t{size};
}

void Regex::check_effort(uint64_t effort, size_t size) {
  if (effort > max_effort(size)) {
    fail(
        ErrorCode::invalid_input,
        "[regex] a pattern of the tokenizer takes too long on this text"
    );
  }
}

RegexScan::RegexScan(const Regex& regex, std::string_view text)
    : regex_(regex), text_(text) {}

bool RegexScan::next(Regex::Match& match) {
  while (from_ <= text_.size()) {
    if (!regex_.find(text_, from_, match, effort_)) {
      return false;
    }
    Regex::check_effort(effort_, text_.size());
    from_ = match.end;
    if (match.begin != match.end || match.end != last_end_) {
      last_end_ = match.end;
      return true;
    }
    from_ += from_ < text_.size()
                 ? utf8::length(static_cast<unsigned char>(text_[from_]))
                 : 1;
  }
  return false;
}

}  // namespace mlxcel::tokenizer
