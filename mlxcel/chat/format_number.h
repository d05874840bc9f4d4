#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mlxcel/chat/value.h"

namespace mlxcel::chat {

/// The mini-language behind the colon of a format string:
/// [[fill]align][sign][#][0][width][grouping][.precision][type].
struct FormatSpec {
  std::string fill = " ";
  char align = 0;  // '<', '>', '^', '='; 0: the type's own
  char sign = '-';
  bool alternate = false;
  int64_t width = 0;
  char grouping = 0;
  int64_t precision = -1;
  char type = 0;

  /// Throws Fault.
  static FormatSpec parse(std::string_view text);
};

/// Digits of a number in a base (2, 8, 10, 16), without sign.
std::string integer_digits(int64_t value, int base, bool upper);
/// printf's e, f, g and their capitals of a value without its sign.
std::string real_digits(
    double magnitude, char type, int64_t precision, bool alternate
);
/// Pads to `width` characters; '=' pads between the sign and the digits.
std::string pad(
    std::string_view sign,
    std::string_view body,
    std::string_view fill,
    char align,
    int64_t width
);
/// format(value, spec).
std::string format_value(const Value& value, std::string_view spec);

}  // namespace mlxcel::chat
