#include "mlxcel/chat/lexer.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/number.h"
#include "mlxcel/chat/text.h"

namespace mlxcel::chat {

namespace {

constexpr size_t kAbsent = std::string_view::npos;

// Longer operators first.
constexpr std::array<std::pair<std::string_view, TokenType>, 26> kOperators = {{
    {"//", TokenType::floor_divide},
    {"**", TokenType::power},
    {"==", TokenType::equal},
    {"!=", TokenType::not_equal},
    {">=", TokenType::greater_equal},
    {"<=", TokenType::less_equal},
    {"+", TokenType::add},
    {"-", TokenType::subtract},
    {"/", TokenType::divide},
    {"*", TokenType::multiply},
    {"%", TokenType::modulo},
    {"~", TokenType::tilde},
    {"[", TokenType::left_bracket},
    {"]", TokenType::right_bracket},
    {"(", TokenType::left_paren},
    {")", TokenType::right_paren},
    {"{", TokenType::left_brace},
    {"}", TokenType::right_brace},
    {">", TokenType::greater},
    {"<", TokenType::less},
    {"=", TokenType::assign},
    {".", TokenType::dot},
    {":", TokenType::colon},
    {"|", TokenType::pipe},
    {",", TokenType::comma},
    {";", TokenType::semicolon},
}};

bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_base_digit(char c, int base) {
  if (base == 16) {
    return is_ascii_digit(c) || (c >= 'a' && c <= 'f') ||
           (c >= 'A' && c <= 'F');
  }
  return c >= '0' && c < '0' + base;
}

bool is_ascii_word(char c) {
  return is_ascii_digit(c) || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z') || c == '_';
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run();

 private:
  enum class Tag { none, raw, variable, block, comment };

  [[noreturn]] void reject(size_t position, std::string message) const {
    throw SyntaxFault{static_cast<uint32_t>(position), std::move(message)};
  }
  char at(size_t position) const {
    return position < source_.size() ? source_[position] : '\0';
  }
  bool starts(size_t position, std::string_view text) const {
    return source_.substr(position, text.size()) == text;
  }
  size_t skip_space(size_t position) const;
  Token& push(TokenType type, size_t position, std::string text = {});

  Tag find_tag(size_t& position, size_t& raw_end) const;
  size_t match_raw_begin(size_t position) const;
  bool match_raw_end(size_t position, size_t& end) const;
  size_t match_end(size_t position, std::string_view end, bool block) const;
  void push_data(size_t begin, size_t end, char sign, bool strip_line);
  void comment(size_t begin);
  void raw(size_t begin, size_t body);
  void tag(std::string_view end_text, TokenType end_type, bool block);
  void code_token();
  size_t digits_end(size_t position) const;
  bool real_number(size_t begin);
  void integer_number(size_t begin);
  void name();
  void string();
  std::string decode(size_t begin, size_t end) const;
  size_t decode_escape(std::string& out, size_t position, size_t end) const;
  size_t decode_hex(
      std::string& out, size_t position, size_t end, size_t digits
  ) const;
  void balance(char c);

  std::string_view source_;
  size_t position_ = 0;
  bool line_start_ = true;  // what was matched last ended with a line end
  std::string open_;        // brackets to be closed in the current tag
  std::vector<Token> tokens_;
};

size_t Lexer::skip_space(size_t position) const {
  while (position < source_.size()) {
    size_t next = position;
    if (!is_space(next_code_point(source_, next))) {
      break;
    }
    position = next;
  }
  return position;
}

Token& Lexer::push(TokenType type, size_t position, std::string text) {
  Token token;
  token.type = type;
  token.position = static_cast<uint32_t>(position);
  token.text = std::move(text);
  tokens_.push_back(std::move(token));
  return tokens_.back();
}

// `{% raw %}` at `position`: the end of that tag, or npos.
size_t Lexer::match_raw_begin(size_t position) const {
  size_t i = position + 2;
  i += at(i) == '-' || at(i) == '+';
  i = skip_space(i);
  if (!starts(i, "raw")) {
    return kAbsent;
  }
  i = skip_space(i + 3);
  if (starts(i, "-%}")) {
    return skip_space(i + 3);
  }
  return starts(i, "%}") ? i + 2 : kAbsent;
}

// Moves to the next tag and says which.
Lexer::Tag Lexer::find_tag(size_t& position, size_t& raw_end) const {
  for (; (position = source_.find('{', position)) != kAbsent; ++position) {
    switch (at(position + 1)) {
      case '%':
        raw_end = match_raw_begin(position);
        return raw_end == kAbsent ? Tag::block : Tag::raw;
      case '{':
        return Tag::variable;
      case '#':
        return Tag::comment;
      default:
        break;
    }
  }
  return Tag::none;
}

// The text before a tag, less what `-` or lstrip_blocks takes from its end.
void Lexer::push_data(size_t begin, size_t end, char sign, bool strip_line) {
  std::string_view text = source_.substr(begin, end - begin);
  if (sign == '-') {
    text = strip(text, Side::right);
  } else if (sign != '+' && strip_line) {
    size_t line = text.rfind('\n') + 1;  // 0 if there is none
    bool at_line_start = line > 0 || line_start_;
    if (at_line_start && strip(text.substr(line), Side::left).empty()) {
      text = text.substr(0, line);
    }
  }
  if (!text.empty()) {
    push(TokenType::data, begin, std::string(text));
  }
}

// The end of a tag: `end`, `-end` with the white space behind it and, for
// blocks, `+end` and `end` with the line end behind it; npos if it isn't here.
size_t Lexer::match_end(size_t position, std::string_view end, bool block)
    const {
  if (block && at(position) == '+' && starts(position + 1, end)) {
    return position + 1 + end.size();
  }
  if (at(position) == '-' && starts(position + 1, end)) {
    return skip_space(position + 1 + end.size());
  }
  if (!starts(position, end)) {
    return kAbsent;
  }
  position += end.size();
  return position + (block && at(position) == '\n');
}

void Lexer::comment(size_t begin) {
  char sign = at(begin + 2);
  size_t body = begin + 2 + (sign == '-' || sign == '+');
  for (size_t i = body; i < source_.size(); ++i) {
    size_t end = match_end(i, "#}", true);
    if (end != kAbsent) {
      position_ = end;
      return;
    }
  }
  reject(begin, "this comment is never closed");
}

// `{% endraw %}` at `position`.
bool Lexer::match_raw_end(size_t position, size_t& end) const {
  size_t i = position + 2;
  i += at(i) == '-' || at(i) == '+';
  i = skip_space(i);
  if (!starts(i, "endraw")) {
    return false;
  }
  end = match_end(skip_space(i + 6), "%}", true);
  return end != kAbsent;
}

void Lexer::raw(size_t begin, size_t body) {
  size_t end = 0;
  for (size_t i = body; (i = source_.find("{%", i)) != kAbsent; ++i) {
    if (match_raw_end(i, end)) {
      line_start_ = body > 0 && source_[body - 1] == '\n';
      push_data(body, i, at(i + 2), true);
      position_ = end;
      return;
    }
  }
  reject(begin, "this raw block is never closed");
}

std::vector<Token> Lexer::run() {
  for (;;) {
    size_t begin = position_;
    size_t found = begin;
    size_t raw_end = 0;
    Tag kind = find_tag(found, raw_end);
    if (kind == Tag::none) {
      push_data(begin, source_.size(), '+', false);
      push(TokenType::end, source_.size());
      return std::move(tokens_);
    }
    push_data(begin, found, at(found + 2), kind != Tag::variable);
    char sign = at(found + 2);
    position_ = found + 2 + (sign == '-' || sign == '+');
    switch (kind) {
      case Tag::raw:
        raw(found, raw_end);
        break;
      case Tag::comment:
        comment(found);
        break;
      case Tag::variable:
        push(TokenType::variable_begin, found);
        tag("}}", TokenType::variable_end, false);
        break;
      default:
        push(TokenType::block_begin, found);
        tag("%}", TokenType::block_end, true);
    }
    line_start_ = position_ > 0 && source_[position_ - 1] == '\n';
  }
}

void Lexer::tag(std::string_view end_text, TokenType end_type, bool block) {
  open_.clear();
  while (position_ < source_.size()) {
    if (open_.empty()) {
      size_t end = match_end(position_, end_text, block);
      if (end != kAbsent) {
        push(end_type, position_);
        position_ = end;
        return;
      }
    }
    code_token();
  }
}

void Lexer::code_token() {
  size_t next = skip_space(position_);
  if (next != position_) {
    position_ = next;
    return;
  }
  char c = at(position_);
  if (is_ascii_digit(c)) {
    if (!real_number(position_)) {
      integer_number(position_);
    }
    return;
  }
  if (is_ascii_word(c) || c < 0) {
    name();
    return;
  }
  if (c == '\'' || c == '"') {
    string();
    return;
  }
  for (const auto& [text, type] : kOperators) {
    if (starts(position_, text)) {
      balance(c);
      push(type, position_);
      position_ += text.size();
      return;
    }
  }
  reject(
      position_, fmt::format("unexpected character {}", quote_python({&c, 1}))
  );
}

void Lexer::balance(char c) {
  switch (c) {
    case '(':
      open_ += ')';
      break;
    case '[':
      open_ += ']';
      break;
    case '{':
      open_ += '}';
      break;
    case ')':
    case ']':
    case '}':
      if (open_.empty()) {
        reject(position_, fmt::format("unexpected '{}'", c));
      }
      if (open_.back() != c) {
        reject(
            position_,
            fmt::format("unexpected '{}', expected '{}'", c, open_.back())
        );
      }
      open_.pop_back();
      break;
    default:
      break;
  }
}

// Behind digits with single underscores between them.
size_t Lexer::digits_end(size_t position) const {
  while (is_ascii_digit(at(position)) ||
         (at(position) == '_' && is_ascii_digit(at(position + 1)) &&
          position > 0 && is_ascii_digit(at(position - 1)))) {
    ++position;
  }
  return position;
}

bool Lexer::real_number(size_t begin) {
  if (begin > 0 && at(begin - 1) == '.') {
    return false;
  }
  size_t end = digits_end(begin);
  bool fraction = at(end) == '.' && is_ascii_digit(at(end + 1));
  size_t mantissa_end = fraction ? digits_end(end + 1) : end;
  size_t exponent = mantissa_end;
  if (at(exponent) == 'e' || at(exponent) == 'E') {
    ++exponent;
    exponent += at(exponent) == '+' || at(exponent) == '-';
  }
  if (exponent > mantissa_end && is_ascii_digit(at(exponent))) {
    end = digits_end(exponent);
  } else if (fraction) {
    end = mantissa_end;
  } else {
    return false;
  }
  std::optional<double> value = parse_real(source_.substr(begin, end - begin));
  if (!value) {
    return false;
  }
  push(TokenType::real, begin).real = *value;
  position_ = end;
  return true;
}

void Lexer::integer_number(size_t begin) {
  size_t end = begin;
  int base = 10;
  if (at(begin) == '0') {
    char letter = static_cast<char>(at(begin + 1) | 0x20);
    base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
  }
  if (base != 10) {
    size_t i = begin + 2;
    while (is_base_digit(at(i), base) ||
           (at(i) == '_' && is_base_digit(at(i + 1), base))) {
      ++i;
    }
    end = i > begin + 2 ? i : begin + 1;
    base = i > begin + 2 ? base : 10;
  } else if (at(begin) == '0') {
    // Only zeros follow a zero.
    end = begin + 1;
    while (at(end) == '0' || (at(end) == '_' && at(end + 1) == '0')) {
      ++end;
    }
  } else {
    end = digits_end(begin);
  }
  try {
    std::optional<int64_t> value =
        parse_integer(source_.substr(begin, end - begin), base);
    push(TokenType::integer, begin).integer = value.value_or(0);
  } catch (const Fault& error) {
    reject(begin, error.message());
  }
  position_ = end;
}

void Lexer::name() {
  size_t begin = position_;
  while (position_ < source_.size()) {
    size_t next = position_;
    char32_t c = next_code_point(source_, next);
    if (c < 0x80 ? !is_ascii_word(static_cast<char>(c)) : !is_word(c)) {
      break;
    }
    position_ = next;
  }
  if (position_ == begin) {
    size_t next = begin;
    next_code_point(source_, next);
    reject(
        begin,
        fmt::format(
            "unexpected character {}",
            quote_python(source_.substr(begin, next - begin))
        )
    );
  }
  push(
      TokenType::name,
      begin,
      std::string(source_.substr(begin, position_ - begin))
  );
}

void Lexer::string() {
  size_t begin = position_;
  char quote = at(begin);
  size_t end = begin + 1;
  while (end < source_.size() && source_[end] != quote) {
    end += source_[end] == '\\' ? 2 : 1;
  }
  if (end >= source_.size()) {
    reject(begin, "this string is never closed");
  }
  push(TokenType::string, begin, decode(begin + 1, end));
  position_ = end + 1;
}

std::string Lexer::decode(size_t begin, size_t end) const {
  std::string out;
  out.reserve(end - begin);
  for (size_t i = begin; i < end;) {
    if (source_[i] != '\\') {
      out += source_[i++];
    } else {
      i = decode_escape(out, i, end);
    }
  }
  return out;
}

// The escape sequences of Python strings; an unknown one stays as it is.
size_t Lexer::decode_escape(std::string& out, size_t position, size_t end)
    const {
  constexpr std::string_view kLetters = "\\'\"abfnrtv";
  constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
  char letter = at(position + 1);
  size_t next = position + 2;
  if (letter == '\n') {
    return next;
  }
  size_t known = kLetters.find(letter);
  if (known != kAbsent) {
    out += kMeanings[known];
    return next;
  }
  if (letter >= '0' && letter <= '7') {
    char32_t c = 0;
    for (next = position + 1;
         next < end && next < position + 4 && is_base_digit(at(next), 8);
         ++next) {
      c = c * 8 + static_cast<char32_t>(at(next) - '0');
    }
    append_code_point(out, c);
    return next;
  }
  switch (letter) {
    case 'x':
      return decode_hex(out, position, end, 2);
    case 'u':
      return decode_hex(out, position, end, 4);
    case 'U':
      return decode_hex(out, position, end, 8);
    case 'N':
      reject(position, "character names (\\N) are not supported");
    default:
      out += '\\';
      return position + 1;
  }
}

size_t Lexer::decode_hex(
    std::string& out, size_t position, size_t end, size_t digits
) const {
  size_t begin = position + 2;
  uint32_t c = 0;
  for (size_t i = begin; i < begin + digits; ++i) {
    if (i >= end || !is_base_digit(at(i), 16)) {
      reject(
          position, fmt::format("expected {} hexadecimal digits here", digits)
      );
    }
    int digit = is_ascii_digit(at(i)) ? at(i) - '0' : (at(i) | 0x20) - 'a' + 10;
    c = c << 4 | static_cast<uint32_t>(digit);
  }
  if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
    reject(position, fmt::format("U+{:04X} is not a character", c));
  }
  append_code_point(out, c);
  return begin + digits;
}

std::string_view symbol(TokenType type) {
  for (const auto& [text, operator_type] : kOperators) {
    if (operator_type == type) {
      return text;
    }
  }
  switch (type) {
    case TokenType::variable_begin:
      return "{{";
    case TokenType::variable_end:
      return "}}";
    case TokenType::block_begin:
      return "{%";
    case TokenType::block_end:
      return "%}";
    default:
      return "";
  }
}

}  // namespace

std::string describe(TokenType type) {
  switch (type) {
    case TokenType::data:
      return "text";
    case TokenType::name:
      return "a name";
    case TokenType::string:
      return "a string";
    case TokenType::integer:
    case TokenType::real:
      return "a number";
    case TokenType::end:
      return "the end of the template";
    default:
      return fmt::format("'{}'", symbol(type));
  }
}

std::string describe(const Token& token) {
  return token.type == TokenType::name ? quote_python(token.text)
                                       : describe(token.type);
}

std::string normalize_source(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      i += i + 1 < source.size() && source[i + 1] == '\n';
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') {
    out.pop_back();
  }
  return out;
}

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace mlxcel::chat
