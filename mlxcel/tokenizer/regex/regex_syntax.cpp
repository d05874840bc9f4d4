#include "mlxcel/tokenizer/regex/regex_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "mlxcel/core/error.h"
#include "mlxcel/tokenizer/regex/regex_class.h"
#include "mlxcel/tokenizer/unicode/unicode.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

constexpr int max_depth = 200;
constexpr unsigned max_repeat = 100000;  // Oniguruma's own limit

using Kind = RegexNode::Kind;
using Greed = RegexNode::Greed;

RegexNode of_kind(Kind kind) {
  RegexNode node;
  node.kind = kind;
  return node;
}

RegexNode of_set(CodeSet set) {
  RegexNode node = of_kind(Kind::set);
  node.set = std::move(set);
  return node;
}

RegexNode around(Kind kind, RegexNode child) {
  RegexNode node = of_kind(kind);
  node.children.push_back(std::move(child));
  return node;
}

class Parser : private RegexReader {
 public:
  explicit Parser(std::string_view pattern) : RegexReader(pattern) {}

  RegexNode parse() {
    RegexNode node = alternation();
    if (!at_end()) {
      malformed("unmatched )");
    }
    return node;
  }

 private:
  struct Options {
    bool ignore_case = false;
    bool dot_all = false;
  };

  RegexNode alternation() {
    RegexNode node = of_kind(Kind::alternate);
    do {
      node.children.push_back(sequence());
    } while (take("|"));
    if (node.children.size() == 1) {
      RegexNode only = std::move(node.children[0]);
      return only;
    }
    return node;
  }

  RegexNode sequence() {
    RegexNode node = of_kind(Kind::concat);
    previous_literal_ = 0;
    while (!at_end() && peek() != '|' && peek() != ')') {
      std::optional<RegexNode> item = atom();
      if (!item) {  // an option that holds to the end of the group
        node.children.push_back(alternation());
        options_ = group_options_;
        break;
      }
      node.children.push_back(quantified(std::move(*item)));
    }
    return node;
  }

  /// Empty after an isolated option such as (?i).
  std::optional<RegexNode> atom() {
    char32_t c = take();
    char32_t literal = previous_literal_;
    previous_literal_ = 0;
    switch (c) {
      case '(':
        return group();
      case '[':
        return of_set(parse_regex_class(*this, options_.ignore_case, depth_));
      case '.': {
        if (options_.dot_all) {
          return of_set(CodeSet().complement());
        }
        return of_set(CodeSet::of('\n', '\n').complement());
      }
      case '^':
        return of_kind(Kind::line_begin);
      case '$':
        return of_kind(Kind::line_end);
      case '\\':
        previous_literal_ = literal;
        return escape();
      case '*':
      case '+':
      case '?':
        malformed("nothing to repeat");
      default:
        previous_literal_ = literal;
        return character(c);
    }
  }

  RegexNode character(char32_t c) {
    CodeSet set = CodeSet::of(c, c);
    if (options_.ignore_case) {
      set = ignore_case(*this, set);
      refuse_folded_pair(previous_literal_, c);
      previous_literal_ = c;
    }
    return of_set(std::move(set));
  }

  /// Pairs that Oniguruma also matches with one character (ss with ß).
  void refuse_folded_pair(char32_t first, char32_t second) {
    auto lower = [](char32_t c) { return static_cast<char>(c | 0x20); };
    if (first >= 0x80 || second >= 0x80 || first == 0) {
      return;
    }
    const char pair[] = {lower(first), lower(second), 0};
    for (const char* folded : {"ss", "ff", "fi", "fl", "st"}) {
      if (std::string_view(pair) == folded) {
        unsupported(fmt::format("case-insensitive \"{}\"", folded));
      }
    }
  }

  RegexNode escape() {
    if (at_end()) {
      malformed("\\ at the end");
    }
    if (std::optional<CodeSet> set = take_class_escape(*this, false)) {
      previous_literal_ = 0;
      return of_set(std::move(*set));
    }
    char32_t c = peek();
    static constexpr struct {
      char letter;
      Kind kind;
    } anchors[] = {
        {'A', Kind::text_begin},
        {'z', Kind::text_end},
        {'Z', Kind::text_end_newline},
        {'b', Kind::word_boundary},
        {'B', Kind::no_word_boundary},
    };
    for (const auto& anchor : anchors) {
      if (c == static_cast<char32_t>(anchor.letter)) {
        take();
        previous_literal_ = 0;
        return of_kind(anchor.kind);
      }
    }
    if (c >= '1' && c <= '9') {
      unsupported("back reference");
    }
    return character(take_character_escape(*this));
  }

  std::optional<RegexNode> group() {
    if (++depth_ > max_depth) {
      unsupported("more than 200 nested groups");
    }
    std::optional<RegexNode> node = group_body();
    --depth_;
    previous_literal_ = 0;
    return node;
  }

  std::optional<RegexNode> group_body() {
    if (!take("?")) {
      if (peek_is('*')) {
        unsupported("(*");
      }
      return closed(options_);
    }
    if (take(":")) {
      return closed(options_);
    }
    if (take("=")) {
      return look(false, false);
    }
    if (take("!")) {
      return look(true, false);
    }
    if (take("<=")) {
      return look(false, true);
    }
    if (take("<!")) {
      return look(true, true);
    }
    if (take(">")) {
      return around(Kind::atomic, closed(options_));
    }
    if (take("#")) {
      while (take() != ')') {
      }
      return of_kind(Kind::empty);
    }
    if (take("<") || take("'")) {
      while (!peek_is('>') && !peek_is('\'')) {
        take();
      }
      take();
      return closed(options_);
    }
    return option_group();
  }

  std::optional<RegexNode> option_group() {
    Options options = options_;
    bool on = true;
    for (;;) {
      char32_t c = take();
      if (c == '-') {
        on = false;
      } else if (c == 'i') {
        options.ignore_case = on;
      } else if (c == 'm') {
        options.dot_all = on;
      } else if (c == ':') {
        return closed(options);
      } else if (c == ')') {
        options_ = options;
        return std::nullopt;
      } else {
        std::string text = "(?";
        utf8::append(text, c);
        unsupported(text);
      }
    }
  }

  /// The rest of a group up to its parenthesis.
  RegexNode closed(Options options) {
    Options outer = options_;
    Options outer_group = group_options_;
    options_ = options;
    group_options_ = options;
    RegexNode node = alternation();
    options_ = outer;
    group_options_ = outer_group;
    if (!take(")")) {
      malformed("( without )");
    }
    return node;
  }

  RegexNode look(bool negative, bool behind) {
    RegexNode node = around(Kind::look, closed(options_));
    node.negative = negative;
    node.behind = behind;
    return node;
  }

  struct Repeat {
    unsigned min;
    unsigned max;
    bool interval;
  };

  /// Each further quantifier repeats what the ones before it made.
  RegexNode quantified(RegexNode node) {
    while (std::optional<Repeat> repeat = take_repeat()) {
      previous_literal_ = 0;
      Greed greed = Greed::greedy;
      if (repeat->min > repeat->max) {
        std::swap(repeat->min, repeat->max);
        greed = Greed::possessive;
      } else if (peek_is('?') && !(repeat->interval && repeat->min == repeat->max)) {
        take();
        greed = Greed::lazy;
      } else if (peek_is('+') && !repeat->interval) {
        take();
        greed = Greed::possessive;
      }
      if (node.kind == Kind::look || ++repeats_ > 1000) {
        unsupported("repeated look-around or too many repeats");
      }
      node = around(Kind::repeat, std::move(node));
      node.min = repeat->min;
      node.max = repeat->max;
      node.greed = greed;
    }
    return node;
  }

  std::optional<Repeat> take_repeat() {
    if (take("*")) {
      return Repeat{0, RegexNode::unbounded, false};
    }
    if (take("+")) {
      return Repeat{1, RegexNode::unbounded, false};
    }
    if (take("?")) {
      return Repeat{0, 1, false};
    }
    if (!peek_is('{')) {
      return std::nullopt;
    }
    // A brace that starts no interval is a character.
    size_t start = position();
    take();
    std::optional<unsigned> min = take_number();
    std::optional<unsigned> max = min;
    if (take(",")) {
      max = take_number();
      if (min && !max) {
        max = RegexNode::unbounded;
      } else if (!min && max) {
        min = 0;
      }
    }
    if (!min || !max || !take("}")) {
      rewind(start);
      return std::nullopt;
    }
    return Repeat{*min, *max, true};
  }

  std::optional<unsigned> take_number() {
    unsigned value = 0;
    size_t start = position();
    while (!at_end() && peek() >= '0' && peek() <= '9') {
      value = value * 10 + static_cast<unsigned>(take() - '0');
      if (value > max_repeat) {
        malformed("a repeat count above 100000");
      }
    }
    return position() == start ? std::nullopt : std::optional(value);
  }

  Options options_;
  Options group_options_;          // at the start of the current group
  char32_t previous_literal_ = 0;  // the case-insensitive one just before
  int depth_ = 0;
  int repeats_ = 0;
};

}  // namespace

RegexNode parse_regex(std::string_view pattern) {
  return Parser(pattern).parse();
}

const CodeSet& regex_word_set() {
  static const CodeSet set = CodeSet::with_attributes(unicode::onig_word);
  return set;
}

}  // namespace mlxcel::tokenizer
