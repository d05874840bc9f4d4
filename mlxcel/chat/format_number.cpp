#include "mlxcel/chat/format_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "mlxcel/chat/budget.h"
#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/number.h"
#include "mlxcel/chat/text.h"

namespace mlxcel::chat {

namespace {

constexpr int64_t kMaxPrecision = 1000;

bool is_align(char c) {
  return c == '<' || c == '>' || c == '^' || c == '=';
}

int64_t read_count(std::string_view text, size_t& at) {
  int64_t count = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    count = add(multiply(count, 10), text[at++] - '0');
  }
  return count;
}

[[noreturn]] void bad_spec(std::string_view type, const FormatSpec& spec) {
  fault(fmt::format(
      "format code '{}' does not fit a value of type '{}'",
      std::string(1, spec.type ? spec.type : '?'),
      type
  ));
}

// Separators every `size` digits of the whole part, which zeros lengthen
// until all is `width` wide; it never begins with a separator.
std::string group_digits(
    const std::string& digits, char mark, size_t size, bool hex, int64_t width
) {
  size_t whole = 0;
  while (whole < digits.size() &&
         (hex ? std::isxdigit(static_cast<unsigned char>(digits[whole]))
              : std::isdigit(static_cast<unsigned char>(digits[whole])))) {
    ++whole;
  }
  width -= static_cast<int64_t>(digits.size() - whole);
  check_text_size(static_cast<uint64_t>(std::max<int64_t>(width, 0)));
  size_t count = whole;
  while (whole > 0 && static_cast<int64_t>(count + (count - 1) / size) < width
  ) {
    ++count;
  }
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0 && (count - i) % size == 0) {
      out += mark;
    }
    out += i < count - whole ? '0' : digits[i - (count - whole)];
  }
  return out + digits.substr(whole);
}

// How wide digits must be that are padded with zeros, or 0.
int64_t zero_width(const FormatSpec& spec, const std::string& sign) {
  bool zeros = spec.fill == "0" && spec.align == '=';
  return zeros ? spec.width - static_cast<int64_t>(sign.size()) : 0;
}

std::string sign_of(bool negative, char sign) {
  return negative ? "-" : sign == '-' ? "" : std::string(1, sign);
}

std::string finish_number(
    const std::string& sign, const std::string& body, const FormatSpec& spec
) {
  return pad(sign, body, spec.fill, spec.align ? spec.align : '>', spec.width);
}

std::string format_real(double value, const FormatSpec& spec) {
  bool negative = std::signbit(value);
  std::string body;
  double magnitude = std::fabs(value);
  if (spec.type == '%') {
    body = real_digits(
               magnitude * 100,
               'f',
               spec.precision < 0 ? 6 : spec.precision,
               spec.alternate
           ) +
           "%";
  } else if (spec.type == 0 && spec.precision < 0) {
    body = chat::format_real(magnitude);
  } else if (spec.type == 0) {
    body = real_digits(
        magnitude, 'g', std::max<int64_t>(spec.precision, 1), spec.alternate
    );
    // Unlike 'g', a plain float keeps a digit behind the point.
    if (std::isfinite(value) && body.find_first_of(".e") == std::string::npos) {
      body += ".0";
    }
  } else {
    char type = spec.type == 'n' ? 'g' : spec.type;
    body = real_digits(
        magnitude, type, spec.precision < 0 ? 6 : spec.precision, spec.alternate
    );
  }
  std::string sign = sign_of(negative, spec.sign);
  if (spec.grouping) {
    body = group_digits(body, spec.grouping, 3, false, zero_width(spec, sign));
  }
  return finish_number(sign, body, spec);
}

std::string format_integer(int64_t value, const FormatSpec& spec) {
  int base = 10;
  std::string prefix;
  switch (spec.type) {
    case 0:
    case 'd':
    case 'n':
      break;
    case 'b':
      base = 2;
      prefix = "0b";
      break;
    case 'o':
      base = 8;
      prefix = "0o";
      break;
    case 'x':
    case 'X':
      base = 16;
      prefix = spec.type == 'x' ? "0x" : "0X";
      break;
    case 'c': {
      std::string character;
      if (value < 0 || value > 0x10ffff ||
          (value >= 0xd800 && value < 0xe000)) {
        fault("format code 'c' needs a character number");
      }
      append_code_point(character, static_cast<char32_t>(value));
      return pad(
          "", character, spec.fill, spec.align ? spec.align : '>', spec.width
      );
    }
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case '%':
      return format_real(static_cast<double>(value), spec);
    default:
      bad_spec("int", spec);
  }
  if (spec.precision >= 0) {
    fault("an integer has no precision in a format");
  }
  std::string body = integer_digits(value, base, spec.type == 'X');
  std::string sign = sign_of(value < 0, spec.sign);
  sign += spec.alternate ? prefix : "";
  if (spec.grouping) {
    size_t size = base == 10 ? 3 : 4;
    body = group_digits(
        body, spec.grouping, size, base == 16, zero_width(spec, sign)
    );
  }
  return finish_number(sign, body, spec);
}

std::string format_text(std::string_view text, const FormatSpec& spec) {
  if ((spec.type != 0 && spec.type != 's') || spec.align == '=' ||
      spec.sign != '-' || spec.alternate || spec.grouping) {
    bad_spec("str", spec);
  }
  if (spec.precision >= 0) {
    text =
        text.substr(0, byte_offset(text, static_cast<size_t>(spec.precision)));
  }
  return pad("", text, spec.fill, spec.align ? spec.align : '<', spec.width);
}

}  // namespace

FormatSpec FormatSpec::parse(std::string_view text) {
  FormatSpec spec;
  size_t at = 0;
  size_t after_fill = 0;
  if (!text.empty()) {
    next_code_point(text, after_fill);
  }
  if (after_fill > 0 && after_fill < text.size() &&
      is_align(text[after_fill])) {
    spec.fill = text.substr(0, after_fill);
    spec.align = text[after_fill];
    at = after_fill + 1;
  } else if (!text.empty() && is_align(text[0])) {
    spec.align = text[0];
    at = 1;
  }
  auto next = [&] { return at < text.size() ? text[at] : '\0'; };
  if (next() == '+' || next() == '-' || next() == ' ') {
    spec.sign = text[at++];
  }
  if (next() == '#') {
    spec.alternate = true;
    ++at;
  }
  bool zero = next() == '0';
  at += zero;
  if (zero && !spec.align) {
    spec.fill = "0";
    spec.align = '0';  // '=' for numbers, the default for the rest
  }
  spec.width = read_count(text, at);
  if (next() == ',' || next() == '_') {
    spec.grouping = text[at++];
  }
  if (next() == '.') {
    size_t digits = ++at;
    spec.precision = read_count(text, at);
    if (at == digits) {
      fault("a format lacks its precision");
    }
  }
  if (at < text.size()) {
    spec.type = text[at++];
  }
  if (at != text.size()) {
    fault(fmt::format("'{}' is no valid format", text));
  }
  return spec;
}

std::string integer_digits(int64_t value, int base, bool upper) {
  uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value)
                                 : static_cast<uint64_t>(value);
  switch (base) {
    case 2:
      return fmt::format("{:b}", magnitude);
    case 8:
      return fmt::format("{:o}", magnitude);
    case 16:
      return upper ? fmt::format("{:X}", magnitude)
                   : fmt::format("{:x}", magnitude);
    default:
      return fmt::format("{}", magnitude);
  }
}

std::string real_digits(
    double magnitude, char type, int64_t precision, bool alternate
) {
  if (precision > kMaxPrecision) {
    fault(fmt::format("a format precision beyond {}", kMaxPrecision));
  }
  std::string pattern = alternate ? "%#.*" : "%.*";
  pattern += type;
  if (std::string_view("eEfFgG").find(type) == std::string_view::npos) {
    fault(fmt::format("format code '{}' does not fit a float", type));
  }
  char buffer[1500];
  int size = std::snprintf(
      buffer,
      sizeof(buffer),
      pattern.c_str(),
      static_cast<int>(precision),
      magnitude
  );
  return std::string(buffer, static_cast<size_t>(std::max(size, 0)));
}

std::string pad(
    std::string_view sign,
    std::string_view body,
    std::string_view fill,
    char align,
    int64_t width
) {
  int64_t missing = width - static_cast<int64_t>(count_code_points(sign)) -
                    static_cast<int64_t>(count_code_points(body));
  missing = std::max<int64_t>(missing, 0);
  check_text_size(static_cast<uint64_t>(missing) * fill.size());
  int64_t left = align == '^' ? missing / 2 : align == '<' ? 0 : missing;
  std::string out;
  auto fill_in = [&](int64_t count) {
    for (; count > 0; --count) {
      out += fill;
    }
  };
  if (align == '=') {
    out += sign;
    fill_in(missing);
    out += body;
    return out;
  }
  fill_in(left);
  out += sign;
  out += body;
  fill_in(missing - left);
  return out;
}

std::string format_value(const Value& value, std::string_view text) {
  if (text.empty()) {
    return to_string(value);
  }
  FormatSpec spec = FormatSpec::parse(text);
  if (spec.align == '0') {
    spec.align = value.is_number() ? '=' : 0;
  }
  if (value.is_integral()) {
    return format_integer(value.integer(), spec);
  }
  if (value.is(Kind::real)) {
    return format_real(value.real(), spec);
  }
  if (value.is_string()) {
    return format_text(value.view(), spec);
  }
  fault(fmt::format(
      "a value of type '{}' takes no format '{}'", type_name(value), text
  ));
}

}  // namespace mlxcel::chat
