#include "mlxcel/tokenizer/regex/regex_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "mlxcel/core/error.h"
#include "mlxcel/tokenizer/regex/regex_syntax.h"
#include "mlxcel/tokenizer/unicode/unicode.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

constexpr int max_class_depth = 200;

uint32_t bits(std::initializer_list<unicode::Category> categories) {
  uint32_t mask = 0;
  for (unicode::Category category : categories) {
    mask |= 1u << category;
  }
  return mask;
}

uint32_t category_group(char letter) {
  using namespace unicode;
  switch (letter) {
    case 'L':
      return bits({Lu, Ll, Lt, Lm, Lo});
    case 'M':
      return bits({Mn, Mc, Me});
    case 'N':
      return bits({Nd, Nl, No});
    case 'P':
      return bits({Pc, Pd, Ps, Pe, Pi, Pf, Po});
    case 'S':
      return bits({Sm, Sc, Sk, So});
    case 'Z':
      return bits({Zs, Zl, Zp});
    case 'C':
      return bits({Cn, Cc, Cf, Co});
    default:
      return 0;
  }
}

std::optional<CodeSet> category_set(std::string_view name) {
  static constexpr std::string_view names[] = {
      "cn", "cc", "cf", "co", "lu", "ll", "lt", "lm", "lo", "mn",
      "mc", "me", "nd", "nl", "no", "pc", "pd", "ps", "pe", "pi",
      "pf", "po", "sm", "sc", "sk", "so", "zs", "zl", "zp",
  };
  static constexpr struct {
    std::string_view name;
    char letter;
  } long_names[] = {
      {"letter", 'L'},
      {"mark", 'M'},
      {"number", 'N'},
      {"punctuation", 'P'},
      {"symbol", 'S'},
      {"separator", 'Z'},
      {"other", 'C'},
  };
  if (name.size() == 1) {
    uint32_t mask = category_group(static_cast<char>(std::toupper(name[0])));
    if (mask != 0) {
      return CodeSet::with_categories(mask);
    }
  }
  const auto* at = std::find(std::begin(names), std::end(names), name);
  if (at != std::end(names)) {
    return CodeSet::with_categories(1u << (at - std::begin(names)));
  }
  for (const auto& entry : long_names) {
    if (name == entry.name) {
      return CodeSet::with_categories(category_group(entry.letter));
    }
  }
  return std::nullopt;
}

CodeSet ascii_hex_digits() {
  CodeSet set = CodeSet::of('0', '9');
  set.add('A', 'F');
  set.add('a', 'f');
  return set;
}

/// Only \w outside of a class takes these numbers for word characters.
CodeSet word_property() {
  CodeSet numbers = CodeSet::of(0xb2, 0xb3);
  numbers.add(0xb9, 0xb9);
  numbers.add(0xbc, 0xbe);
  return regex_word_set().intersection(numbers.complement());
}

/// Names that POSIX brackets and \p{...} share (Oniguruma's doc/RE, 6).
std::optional<CodeSet> posix_set(std::string_view name, bool bracket) {
  using namespace unicode;
  if (name == "alpha") {
    return CodeSet::with_attributes(alphabetic);
  }
  if (name == "digit") {
    return CodeSet::with_categories(bits({Nd}));
  }
  if (name == "alnum") {
    CodeSet set = CodeSet::with_attributes(alphabetic);
    set.add(CodeSet::with_categories(bits({Nd})));
    return set;
  }
  if (name == "lower") {
    return CodeSet::with_attributes(lowercase);
  }
  if (name == "upper") {
    return CodeSet::with_attributes(uppercase);
  }
  if (name == "space") {
    return CodeSet::with_attributes(space);
  }
  if (name == "word") {
    return word_property();
  }
  if (name == "punct") {
    uint32_t mask = category_group('P');
    if (bracket) {
      mask |= category_group('S');
    }
    return CodeSet::with_categories(mask);
  }
  if (name == "ascii") {
    return CodeSet::of(0, 0x7f);
  }
  if (name == "xdigit") {
    return ascii_hex_digits();
  }
  if (name == "cntrl") {
    return CodeSet::with_categories(bits({Cc}));
  }
  if (name == "blank") {
    CodeSet set = CodeSet::with_categories(bits({Zs}));
    set.add('\t', '\t');
    return set;
  }
  return std::nullopt;
}

/// Property names compare without case, spaces, hyphens and underscores.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (char c : name) {
    if (c != ' ' && c != '-' && c != '_') {
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return plain;
}

CodeSet property_set(
    RegexReader& reader, std::string_view name, bool in_class
) {
  std::string plain = plain_name(name);
  if (plain == "word" && !in_class) {
    return regex_word_set();
  }
  if (std::optional<CodeSet> set = category_set(plain)) {
    return *set;
  }
  if (std::optional<CodeSet> set = posix_set(plain, false)) {
    return *set;
  }
  if (plain == "any") {
    return CodeSet().complement();
  }
  if (unsigned script = unicode::script_number(plain.c_str())) {
    return CodeSet::with_script(script);
  }
  reader.unsupported(fmt::format("property {}", quote(name)));
}

CodeSet take_property(RegexReader& reader, bool negative, bool in_class) {
  std::string name;
  reader.take("{");
  if (reader.take("^")) {
    negative = !negative;
  }
  while (!reader.peek_is('}')) {
    utf8::append(name, reader.take());
  }
  reader.take();
  CodeSet set = property_set(reader, name, in_class);
  return negative ? set.complement() : set;
}

char32_t take_hex(RegexReader& reader, unsigned max_digits) {
  char32_t value = 0;
  unsigned digits = 0;
  while (digits < max_digits && !reader.at_end() && reader.peek() < 0x80 &&
         std::isxdigit(static_cast<int>(reader.peek())) != 0) {
    char32_t c = reader.take();
    value = value * 16 + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    ++digits;
  }
  if (digits == 0 || value > CodeSet::max_code_point ||
      (value >= 0xd800 && value < 0xe000)) {
    reader.malformed("a hexadecimal number that is no character");
  }
  return value;
}

/// One class between brackets.
class ClassParser {
 public:
  ClassParser(RegexReader& reader, bool fold, int depth)
      : reader_(reader), fold_(fold), depth_(depth) {
    if (depth > max_class_depth) {
      reader.unsupported("more than 200 nested classes");
    }
  }

  CodeSet parse() {
    bool negative = reader_.take("^");
    if (reader_.peek_is(']')) {
      if (reader_.rest().find(']', 1) == std::string_view::npos) {
        reader_.malformed("an empty class");
      }
      reader_.take();
      add_character(']');
    }
    while (!reader_.take("]")) {
      if (reader_.at_end()) {
        reader_.malformed("[ without ]");
      }
      item();
    }
    CodeSet set = result();
    return negative ? set.complement() : set;
  }

 private:
  void item() {
    bool hyphen_next = reader_.peek_is('-');
    after_property_ = after_property_ && hyphen_next;
    if (reader_.take("&&")) {
      left_ = result();
      current_ = CodeSet();
      has_character_ = false;
    } else if (reader_.take("[")) {
      nested();
    } else if (reader_.take("-")) {
      hyphen();
    } else {
      member();
    }
  }

  void nested() {
    has_character_ = false;
    if (reader_.peek_is(':') &&
        reader_.rest().find(":]") != std::string_view::npos) {
      size_t start = reader_.position();
      reader_.take();
      bool negative = reader_.take("^");
      std::string name;
      while (!reader_.take(":]")) {
        utf8::append(name, reader_.take());
      }
      std::optional<CodeSet> set = posix_set(name, true);
      if (set) {
        current_.add(negative ? set->complement() : *set);
        after_property_ = true;
        return;
      }
      reader_.rewind(start);
      reader_.unsupported(fmt::format("bracket [:{}:]", name));
    }
    current_.add(ClassParser(reader_, fold_, depth_ + 1).parse());
  }

  /// A range only between two characters; else the hyphen itself.
  void hyphen() {
    bool at_end = reader_.peek_is(']') || reader_.rest().starts_with("&&");
    if (after_property_ && !at_end) {
      reader_.malformed("a range that starts with a property");
    }
    if (!has_character_ || at_end) {
      add_character('-');
      return;
    }
    if (reader_.peek_is('[')) {
      reader_.malformed("a range that ends in a class");
    }
    char32_t first = character_;
    char32_t last = reader_.take();
    if (last == '\\') {
      if (take_class_escape(reader_, true)) {
        reader_.malformed("a range that ends in a class");
      }
      last = class_character();
    }
    if (last < first) {
      reader_.malformed("a range that ends before it starts");
    }
    current_.add(first, last);
    has_character_ = false;
  }

  void member() {
    char32_t c = reader_.take();
    if (c == '\\') {
      if (std::optional<CodeSet> set = take_class_escape(reader_, true)) {
        current_.add(*set);
        has_character_ = false;
        after_property_ = true;
        return;
      }
      c = class_character();
    }
    add_character(c);
  }

  char32_t class_character() {
    return reader_.take("b") ? U'\b' : take_character_escape(reader_);
  }

  void add_character(char32_t c) {
    current_.add(c, c);
    character_ = c;
    has_character_ = true;
  }

  CodeSet result() const {
    CodeSet set = fold_ ? ignore_case(reader_, current_) : current_;
    return left_ ? left_->intersection(set) : set;
  }

  RegexReader& reader_;
  bool fold_;
  int depth_;
  CodeSet current_;
  std::optional<CodeSet> left_;  // of the last &&
  char32_t character_ = 0;       // the last member, if it is one character
  bool has_character_ = false;
  bool after_property_ = false;
};

}  // namespace

RegexReader::RegexReader(std::string_view pattern) : pattern_(pattern) {
  if (!utf8::valid(pattern)) {
    malformed("invalid UTF-8");
  }
}

char32_t RegexReader::peek() const {
  const char* p = pattern_.data() + position_;
  return utf8::next(p);
}

char32_t RegexReader::take() {
  if (at_end()) {
    malformed("unexpected end");
  }
  const char* p = pattern_.data() + position_;
  char32_t c = utf8::next(p);
  position_ = static_cast<size_t>(p - pattern_.data());
  return c;
}

bool RegexReader::take(std::string_view text) {
  if (!rest().starts_with(text)) {
    return false;
  }
  position_ += text.size();
  return true;
}

void RegexReader::malformed(const std::string& what) const {
  fail(
      ErrorCode::invalid_input,
      fmt::format("[regex] {}: {} at byte {}", quote(pattern_), what, position_)
  );
}

void RegexReader::unsupported(const std::string& what) const {
  fail(
      ErrorCode::unsupported,
      fmt::format(
          "[regex] {}: {} is not supported (at byte {})",
          quote(pattern_),
          what,
          position_
      )
  );
}

CodeSet parse_regex_class(RegexReader& reader, bool fold, int depth) {
  return ClassParser(reader, fold, depth).parse();
}

std::optional<CodeSet> take_class_escape(RegexReader& reader, bool in_class) {
  static constexpr std::string_view letters = "sSdDwWhH";
  bool property =
      reader.rest().starts_with("p{") || reader.rest().starts_with("P{");
  if (!property && (reader.at_end() || reader.peek() >= 0x80 ||
                    letters.find(static_cast<char>(reader.peek())) ==
                        std::string_view::npos)) {
    return std::nullopt;
  }
  char letter = static_cast<char>(reader.take());
  bool negative = std::isupper(letter) != 0;
  CodeSet set;
  switch (letter | 0x20) {
    case 's':
      set = CodeSet::with_attributes(unicode::space);
      break;
    case 'd':
      set = CodeSet::with_categories(bits({unicode::Nd}));
      break;
    case 'w':
      set = in_class ? word_property() : regex_word_set();
      break;
    case 'h':
      set = ascii_hex_digits();
      break;
    default:
      return take_property(reader, negative, in_class);
  }
  return negative ? set.complement() : set;
}

char32_t take_character_escape(RegexReader& reader) {
  char32_t c = reader.take();
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case 'a':
      return '\a';
    case 'e':
      return 0x1b;
    case 'x':
    case 'u': {
      if (c == 'u') {
        return take_hex(reader, 4);
      }
      bool braces = reader.take("{");
      char32_t value = take_hex(reader, braces ? 8 : 2);
      if (braces && !reader.take("}")) {
        reader.malformed("\\x{ without }");
      }
      if (!braces && value >= 0x80) {
        reader.unsupported("\\x as a byte");
      }
      return value;
    }
    default:
      break;
  }
  // A p without a brace is itself, as official as it is odd.
  bool plain = c == 'p' || c == 'P';
  if (c < 0x80 && std::isalnum(static_cast<int>(c)) != 0 && !plain) {
    reader.unsupported(fmt::format("\\{}", static_cast<char>(c)));
  }
  return c;
}

CodeSet ignore_case(const RegexReader& reader, const CodeSet& set) {
  using namespace unicode;
  static const CodeSet cased = [] {
    CodeSet all = CodeSet::with_attributes(lowercase | uppercase);
    all.add(CodeSet::with_categories(bits({Lu, Ll, Lt, Lm, Mn})));
    return all.intersection(CodeSet::of(0x80, CodeSet::max_code_point));
  }();
  if (!set.intersection(cased).empty()) {
    reader.unsupported("ignoring the case of other than ASCII letters");
  }
  CodeSet both = set;
  for (char32_t c = 'a'; c <= 'z'; ++c) {
    if (set.contains(c) || set.contains(c - 32)) {
      both.add(c, c);
      both.add(c - 32, c - 32);
      if (c == 'k') {
        both.add(0x212a, 0x212a);  // Kelvin sign
      } else if (c == 's') {
        both.add(0x17f, 0x17f);  // long s
      }
    }
  }
  return both;
}

}  // namespace mlxcel::tokenizer
