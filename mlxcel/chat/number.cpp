#include "mlxcel/chat/number.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/text.h"

namespace mlxcel::chat {

namespace {

[[noreturn]] void overflow() {
  fault("an integer of more than 64 bits");
}

// Digits with single underscores between them, the underscores removed.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    bool between = i > 0 && i + 1 < text.size() && text[i - 1] != '_' &&
                   std::isalnum(static_cast<unsigned char>(text[i - 1])) &&
                   std::isalnum(static_cast<unsigned char>(text[i + 1]));
    if (!between) {
      return std::nullopt;
    }
  }
  return out;
}

// Decimal digits of any script as ASCII; other characters stay.
std::string ascii_digits(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    char32_t c = next_code_point(text, i);
    if (c < 0x80 || !is_decimal(c)) {
      out += text.substr(begin, i - begin);
      continue;
    }
    // Unicode keeps the ten digits of a script together, from 0 up.
    char32_t zero = c;
    while (is_decimal(zero - 1) && c - zero < 9) {
      --zero;
    }
    out += static_cast<char>('0' + (c - zero));
  }
  return out;
}

int base_of_prefix(char letter) {
  switch (letter) {
    case 'x':
    case 'X':
      return 16;
    case 'o':
    case 'O':
      return 8;
    case 'b':
    case 'B':
      return 2;
    default:
      return 0;
  }
}

}  // namespace

std::string format_real(double value) {
  if (std::isnan(value)) {
    return "nan";
  }
  if (std::isinf(value)) {
    return value > 0 ? "inf" : "-inf";
  }
  char buffer[64];
  auto end = std::to_chars(
      buffer, buffer + sizeof(buffer), value, std::chars_format::scientific
  );
  std::string_view text(buffer, static_cast<size_t>(end.ptr - buffer));
  size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(
      text.data() + e + 1 + (text[e + 1] == '+'), end.ptr, exponent
  );
  if (exponent < -4 || exponent >= 16) {
    return std::string(text);
  }
  end = std::to_chars(
      buffer, buffer + sizeof(buffer), value, std::chars_format::fixed
  );
  std::string out(buffer, end.ptr);
  return out.find('.') == std::string::npos ? out + ".0" : out;
}

std::optional<int64_t> parse_integer(std::string_view text, int base) {
  std::string digits = ascii_digits(strip(text, Side::both));
  std::string_view rest = digits;
  bool negative = !rest.empty() && rest[0] == '-';
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    rest.remove_prefix(1);
  }
  if (rest.size() > 2 && rest[0] == '0' && base != 10) {
    int prefix = base_of_prefix(rest[1]);
    if (prefix != 0 && (base == 0 || base == prefix)) {
      base = prefix;
      rest.remove_prefix(rest[2] == '_' ? 3 : 2);
    }
  }
  if (base == 0) {
    base = 10;
    // A decimal literal has no leading zeros.
    if (rest.size() > 1 && rest[0] == '0' &&
        rest.find_first_not_of("0_") != std::string_view::npos) {
      return std::nullopt;
    }
  }
  std::optional<std::string> plain = without_underscores(rest);
  if (!plain || plain->empty() || (*plain)[0] == '-') {
    return std::nullopt;
  }
  std::string signed_text = (negative ? "-" : "") + *plain;
  int64_t value = 0;
  auto [end, error] = std::from_chars(
      signed_text.data(), signed_text.data() + signed_text.size(), value, base
  );
  if (end != signed_text.data() + signed_text.size()) {
    return std::nullopt;
  }
  if (error == std::errc::result_out_of_range) {
    overflow();
  }
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<double> parse_real(std::string_view text) {
  std::optional<std::string> plain =
      without_underscores(ascii_digits(strip(text, Side::both)));
  if (!plain) {
    return std::nullopt;
  }
  std::string_view rest = *plain;
  bool negative = !rest.empty() && rest[0] == '-';
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    rest.remove_prefix(1);
  }
  std::string word = to_lower(rest);
  double value = 0;
  if (word == "inf" || word == "infinity") {
    value = INFINITY;
  } else if (word == "nan") {
    value = NAN;
  } else {
    // Only digits, point and exponent: from_chars knows other words as well.
    if (rest.empty() ||
        rest.find_first_not_of("0123456789.eE+-") != std::string_view::npos ||
        rest[0] == '-' || rest[0] == '+') {
      return std::nullopt;
    }
    auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (end != rest.data() + rest.size()) {
      return std::nullopt;
    }
    if (error == std::errc::result_out_of_range) {
      value = std::strtod(std::string(rest).c_str(), nullptr);
    } else if (error != std::errc()) {
      return std::nullopt;
    }
  }
  return negative ? -value : value;
}

int64_t add(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_add_overflow(a, b, &r) ? overflow(), 0 : r;
}

int64_t subtract(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_sub_overflow(a, b, &r) ? overflow(), 0 : r;
}

int64_t multiply(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? overflow(), 0 : r;
}

int64_t power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if (exponent & 1) {
      result = multiply(result, base);
    }
    exponent >>= 1;
    if (exponent > 0) {
      // 0, 1 and -1 stay small whatever the exponent.
      base = multiply(base, base);
    }
  }
  return result;
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == -1) {
    return subtract(0, a);
  }
  int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)));
}

int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == -1) {
    return 0;
  }
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double floor_divide(double a, double b) {
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    quotient -= 1;
  }
  if (quotient == 0) {
    return std::copysign(0.0, a / b);
  }
  // Whole but for rounding.
  double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

double floor_modulo(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest == 0) {
    return std::copysign(0.0, b);
  }
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

int64_t truncate(double value) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  if (std::isfinite(value) && !(value >= -kEnd && value < kEnd)) {
    overflow();
  }
  if (!std::isfinite(value)) {
    fault(fmt::format(
        "cannot convert the number {} to an integer", format_real(value)
    ));
  }
  return static_cast<int64_t>(value);
}

double round_real(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 400) {
    return value;
  }
  if (digits < -400) {
    return std::copysign(0.0, value);
  }
  if (digits >= 0) {
    // printf rounds the exact binary value, halves to even.
    std::string text = fmt::format("{:.{}f}", value, digits);
    return std::strtod(text.c_str(), nullptr);
  }
  double unit = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / unit) * unit;
}

int64_t round_integer(int64_t value, int64_t digits) {
  if (digits >= 0) {
    return value;
  }
  if (digits < -18) {
    return 0;
  }
  int64_t unit = power(10, -digits);
  int64_t low = floor_divide(value, unit);
  int64_t twice = floor_modulo(value, unit);
  bool up = twice > unit - twice || (twice == unit - twice && low % 2 != 0);
  return multiply(low + up, unit);
}

}  // namespace mlxcel::chat
