#include "mlxcel/tokenizer/regex.h"

#include <fmt/format.h>

#include <string>

#include "mlxcel/core/error.h"
#include "mlxcel/tokenizer/regex_dfa.h"
#include "mlxcel/tokenizer/regex_pcre.h"
#include "mlxcel/tokenizer/regex_syntax.h"
#include "mlxcel/tokenizer/utf8.h"

namespace mlxcel::tokenizer {

namespace {

// A scan may look at each byte this often on average, and take this long.
constexpr uint64_t effort_per_byte = 256;
constexpr uint64_t base_effort = 1 << 22;
constexpr std::chrono::seconds max_time(20);

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

[[noreturn]] void too_long() {
  fail(
      ErrorCode::invalid_input,
      "[regex] a pattern of the tokenizer takes too long on this text"
  );
}

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

RegexScan::RegexScan(const Regex& regex, std::string_view text)
    : regex_(regex), text_(text) {}

bool RegexScan::next(Regex::Match& match) {
  while (from_ <= text_.size()) {
    // The clock is for backtracking, whose effort nobody counts.
    if ((++calls_ & 0xff) == 0) {
      auto now = std::chrono::steady_clock::now();
      if (calls_ == 0x100) {
        start_ = now;
      } else if (now - start_ > max_time) {
        too_long();
      }
    }
    if (!regex_.find(text_, from_, match, effort_)) {
      return false;
    }
    if (effort_ > effort_per_byte * text_.size() + base_effort) {
      too_long();
    }
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
