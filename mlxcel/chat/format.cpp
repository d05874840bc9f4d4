#include "mlxcel/chat/format.h"

#include <fmt/format.h>

#include <cmath>

#include "mlxcel/chat/budget.h"
#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/format_number.h"
#include "mlxcel/chat/interpreter.h"
#include "mlxcel/chat/number.h"
#include "mlxcel/chat/text.h"

namespace mlxcel::chat {

namespace {

// One conversion of a printf pattern: %(key)#0- +width.precision type.
struct Conversion {
  std::optional<std::string_view> key;
  bool alternate = false;
  bool zero = false;
  bool left = false;
  char sign = '-';
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

class PrintfFormatter {
 public:
  PrintfFormatter(std::string_view pattern, const Value& values, bool markup)
      : pattern_(pattern), values_(values), markup_(markup) {
    if (values.is(Kind::tuple)) {
      arguments_ = values.items();
    } else {
      arguments_.push_back(values);
    }
  }

  std::string run() {
    while (at_ < pattern_.size()) {
      size_t percent = pattern_.find('%', at_);
      if (percent == std::string_view::npos) {
        out_ += pattern_.substr(at_);
        break;
      }
      out_ += pattern_.substr(at_, percent - at_);
      at_ = percent + 1;
      conversion();
      check_text_size(out_.size());
    }
    // What Python takes for a mapping may hold more than is used.
    bool mapping = values_.is(Kind::dict) || values_.is(Kind::list) ||
                   values_.is(Kind::range) || values_.is(Kind::undefined);
    if (used_ < arguments_.size() && !mapping) {
      fault("not all values fit the format string");
    }
    return std::move(out_);
  }

 private:
  char peek() const {
    return at_ < pattern_.size() ? pattern_[at_] : '\0';
  }
  const Value& take() {
    if (used_ >= arguments_.size()) {
      fault("not enough values for the format string");
    }
    return arguments_[used_++];
  }
  int64_t count();
  Conversion parse();
  void conversion();
  std::string convert(const Conversion& c, const Value& value) const;
  std::string integer(const Conversion& c, const Value& value) const;
  std::string real(const Conversion& c, const Value& value) const;
  std::string padded(
      const Conversion& c,
      std::string_view sign,
      std::string_view body,
      bool zero
  ) const {
    char align = c.left ? '<' : zero ? '=' : '>';
    return pad(sign, body, zero && !c.left ? "0" : " ", align, c.width);
  }

  std::string_view pattern_;
  const Value& values_;
  bool markup_;
  std::vector<Value> arguments_;
  size_t used_ = 0;
  size_t at_ = 0;
  std::string out_;
};

int64_t PrintfFormatter::count() {
  if (peek() == '*') {
    ++at_;
    const Value& value = take();
    if (!value.is_integral()) {
      fault("'*' in a format string needs an integer");
    }
    return value.integer();
  }
  int64_t result = 0;
  while (peek() >= '0' && peek() <= '9') {
    result = add(multiply(result, 10), pattern_[at_++] - '0');
  }
  return result;
}

Conversion PrintfFormatter::parse() {
  Conversion c;
  if (peek() == '(') {
    size_t begin = ++at_;
    for (int depth = 1; depth > 0; ++at_) {
      if (at_ >= pattern_.size()) {
        fault("a format string ends inside a key");
      }
      depth += peek() == '(' ? 1 : peek() == ')' ? -1 : 0;
    }
    c.key = pattern_.substr(begin, at_ - 1 - begin);
  }
  for (;; ++at_) {
    char flag = peek();
    if (flag == '#') {
      c.alternate = true;
    } else if (flag == '0') {
      c.zero = true;
    } else if (flag == '-') {
      c.left = true;
    } else if (flag == '+' || (flag == ' ' && c.sign != '+')) {
      c.sign = flag;
    } else if (flag != ' ') {
      break;
    }
  }
  c.width = count();
  if (c.width < 0) {
    c.left = true;
    c.width = subtract(0, c.width);
  }
  if (peek() == '.') {
    ++at_;
    c.precision = std::max<int64_t>(count(), 0);
  }
  while (peek() == 'h' || peek() == 'l' || peek() == 'L') {
    ++at_;
  }
  c.type = peek();
  if (!c.type) {
    fault("a format string ends inside a conversion");
  }
  ++at_;
  return c;
}

void PrintfFormatter::conversion() {
  Conversion c = parse();
  if (c.type == '%') {
    out_ += '%';
    return;
  }
  if (!c.key) {
    out_ += convert(c, take());
    return;
  }
  if (!values_.is(Kind::dict)) {
    fault("a format string with keys needs a dict");
  }
  const Value* value = values_.dict().find(*c.key);
  if (!value) {
    fault(fmt::format("the format key {} is missing", quote_python(*c.key)));
  }
  used_ = arguments_.size();
  out_ += convert(c, *value);
}

std::string PrintfFormatter::integer(const Conversion& c, const Value& value)
    const {
  bool decimal = c.type == 'd' || c.type == 'i' || c.type == 'u';
  if (!value.is_integral() && !(decimal && value.is(Kind::real))) {
    fault(fmt::format(
        "format '%{}' needs a number, got '{}'", c.type, type_name(value)
    ));
  }
  int64_t number =
      value.is_integral() ? value.integer() : truncate(value.real());
  int base = decimal ? 10 : c.type == 'o' ? 8 : 16;
  std::string body = integer_digits(number, base, c.type == 'X');
  if (c.precision > static_cast<int64_t>(body.size())) {
    body = pad("", body, "0", '>', c.precision);
  }
  std::string sign = number < 0      ? "-"
                     : c.sign == '-' ? ""
                                     : std::string(1, c.sign);
  if (c.alternate && !decimal) {
    sign += c.type == 'o' ? "0o" : c.type == 'x' ? "0x" : "0X";
  }
  return padded(c, sign, body, c.zero);
}

std::string PrintfFormatter::real(const Conversion& c, const Value& value)
    const {
  if (!value.is_number()) {
    fault(fmt::format(
        "format '%{}' needs a number, got '{}'", c.type, type_name(value)
    ));
  }
  double number = value.real();
  std::string body = real_digits(
      std::fabs(number), c.type, c.precision < 0 ? 6 : c.precision, c.alternate
  );
  std::string sign = std::signbit(number) ? "-"
                     : c.sign == '-'      ? ""
                                          : std::string(1, c.sign);
  return padded(c, sign, body, c.zero);
}

// repr() with everything beyond ASCII escaped.
std::string ascii_repr(const Value& value) {
  std::string text = repr(value);
  std::string out;
  for (size_t i = 0; i < text.size();) {
    char32_t c = next_code_point(text, i);
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
    }
  }
  return out;
}

std::string PrintfFormatter::convert(const Conversion& c, const Value& value)
    const {
  switch (c.type) {
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
      return integer(c, value);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
      return real(c, value);
    case 'c': {
      if (value.is_integral()) {
        return padded(c, "", format_value(value, "c"), false);
      }
      if (!value.is_string() || value.text().length() != 1) {
        fault("format '%c' needs a number or one character");
      }
      return padded(c, "", value.view(), false);
    }
    case 's':
    case 'r':
    case 'a':
      break;
    default:
      fault(fmt::format(
          "unknown format {}", quote_python("%" + std::string(1, c.type))
      ));
  }
  std::string text = c.type == 's'   ? to_string(value)
                     : c.type == 'r' ? repr(value)
                                     : ascii_repr(value);
  if (markup_ && !(c.type == 's' && value.is_string() && value.text().markup)) {
    text = escape_html(text);
  }
  if (c.precision >= 0) {
    text.resize(byte_offset(text, static_cast<size_t>(c.precision)));
  }
  return padded(c, "", text, false);
}

class BraceFormatter {
 public:
  BraceFormatter(
      Interpreter& interpreter, const Arguments& arguments, bool markup
  )
      : interpreter_(interpreter), arguments_(arguments), markup_(markup) {}

  // A field inside a format may itself hold fields, one level deep.
  std::string run(std::string_view pattern, int depth) {
    if (depth > 2) {
      fault("format fields nested too deeply");
    }
    std::string out;
    for (size_t at = 0; at < pattern.size();) {
      char c = pattern[at];
      bool doubled = at + 1 < pattern.size() && pattern[at + 1] == c;
      if ((c == '{' || c == '}') && doubled && depth == 1) {
        out += c;
        at += 2;
      } else if (c == '{') {
        size_t end = field_end(pattern, at);
        out += field(pattern.substr(at + 1, end - at - 1), depth);
        at = end + 1;
      } else if (c == '}') {
        fault("a single '}' in a format string");
      } else {
        out += c;
        ++at;
      }
      check_text_size(out.size());
    }
    return out;
  }

 private:
  static size_t field_end(std::string_view pattern, size_t at) {
    int open = 0;
    for (size_t i = at; i < pattern.size(); ++i) {
      open += pattern[i] == '{' ? 1 : pattern[i] == '}' ? -1 : 0;
      if (open == 0) {
        return i;
      }
    }
    fault("a single '{' in a format string");
  }

  std::string field(std::string_view text, int depth);
  Value lookup(std::string_view name);
  Value first_value(std::string_view name);

  Interpreter& interpreter_;
  const Arguments& arguments_;
  bool markup_;
  size_t next_ = 0;
  enum class Numbering {
    unknown,
    automatic,
    manual
  } numbering_ = Numbering::unknown;
};

std::string BraceFormatter::field(std::string_view text, int depth) {
  size_t name_end = 0;
  bool in_brackets = false;
  while (name_end < text.size()) {
    char c = text[name_end];
    in_brackets = c == '[' || (in_brackets && c != ']');
    if (!in_brackets && (c == '!' || c == ':')) {
      break;
    }
    ++name_end;
  }
  std::string_view name = text.substr(0, name_end);
  std::string_view rest = text.substr(name_end);
  if (name.find('{') != std::string_view::npos) {
    fault("a format field name holds '{'");
  }
  char conversion = 0;
  if (!rest.empty() && rest[0] == '!') {
    if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':')) {
      fault("a format field has a malformed conversion");
    }
    conversion = rest[1];
    rest.remove_prefix(2);
  }
  Value value = lookup(name);
  std::string spec = rest.empty() ? "" : run(rest.substr(1), depth + 1);
  switch (conversion) {
    case 0:
      break;
    case 's':
      value = Value::of(to_string(value));
      break;
    case 'r':
      value = Value::of(repr(value));
      break;
    case 'a':
      value = Value::of(ascii_repr(value));
      break;
    default:
      fault(fmt::format("unknown conversion '!{}' in a format", conversion));
  }
  if (!markup_) {
    return format_value(value, spec);
  }
  if (!value.is_string() || !value.text().markup) {
    return escape_html(format_value(value, spec));
  }
  if (!spec.empty()) {
    fault("escaped text takes no format");
  }
  return std::string(value.view());
}

Value BraceFormatter::first_value(std::string_view name) {
  bool numeric = name.find_first_not_of("0123456789") == std::string_view::npos;
  if (!numeric) {
    const Value* value = arguments_.find(name);
    if (!value) {
      fault(fmt::format("the format field {} is missing", quote_python(name)));
    }
    return *value;
  }
  Numbering numbering = name.empty() ? Numbering::automatic : Numbering::manual;
  if (numbering_ != Numbering::unknown && numbering_ != numbering) {
    fault("a format mixes numbered and unnumbered fields");
  }
  numbering_ = numbering;
  std::optional<int64_t> index =
      name.empty() ? static_cast<int64_t>(next_++) : parse_integer(name, 10);
  if (!index || *index >= static_cast<int64_t>(arguments_.positional.size())) {
    fault("not enough values for the format string");
  }
  return arguments_.positional[static_cast<size_t>(*index)];
}

// `0.name[key]`: an attribute or an item of an argument.
Value BraceFormatter::lookup(std::string_view name) {
  size_t end = std::min(name.find_first_of(".["), name.size());
  Value value = first_value(name.substr(0, end));
  name.remove_prefix(end);
  while (!name.empty()) {
    bool attribute = name[0] == '.';
    if (!attribute && name[0] != '[') {
      fault("a format field has something behind ']'");
    }
    name.remove_prefix(1);
    size_t stop = attribute ? std::min(name.find_first_of(".["), name.size())
                            : name.find(']');
    if (stop == std::string_view::npos || stop == 0) {
      fault("a format field has an empty or open part");
    }
    std::string_view key = name.substr(0, stop);
    bool numeric =
        key.find_first_not_of("0123456789") == std::string_view::npos;
    if (attribute) {
      value = interpreter_.get_attribute(value, Value::of(key));
    } else if (numeric) {
      value = interpreter_.get_item(
          value, Value::of(parse_integer(key, 10).value_or(0))
      );
    } else {
      value = interpreter_.get_item(value, Value::of(key));
    }
    name.remove_prefix(stop + !attribute);
  }
  return value;
}

}  // namespace

std::string format_printf(
    std::string_view pattern, const Value& values, bool markup
) {
  return PrintfFormatter(pattern, values, markup).run();
}

std::string format_braces(
    Interpreter& interpreter,
    std::string_view pattern,
    const Arguments& arguments,
    bool markup
) {
  return BraceFormatter(interpreter, arguments, markup).run(pattern, 1);
}

}  // namespace mlxcel::chat
