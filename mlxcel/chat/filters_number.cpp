#include <fmt/format.h>

#include <cmath>

#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/filter_functions.h"
#include "mlxcel/chat/interpreter.h"
#include "mlxcel/chat/number.h"
#include "mlxcel/chat/operators.h"

namespace mlxcel::chat {

namespace {

[[noreturn]] void not_a_number(const char* filter, const Value& input) {
  fault(
      input.is(Kind::undefined)
          ? input.absence()
          : fmt::format("{}: '{}' is no number", filter, type_name(input))
  );
}

Value filter_abs(Interpreter&, const Value& input, const Arguments& given) {
  Parameters::none("abs", given);
  if (input.is(Kind::real)) {
    return Value::of(std::fabs(input.real()));
  }
  if (!input.is_integral()) {
    not_a_number("abs", input);
  }
  return Value::of(
      input.integer() < 0 ? subtract(0, input.integer()) : input.integer()
  );
}

Value filter_int(Interpreter&, const Value& input, const Arguments& given) {
  Parameters arguments("int", given, {"default", "base"});
  Value fallback = arguments.has(0) ? arguments[0] : Value::of(int64_t{0});
  if (input.is(Kind::undefined)) {
    fault(input.absence());
  }
  if (input.is_integral()) {
    return Value::of(input.integer());
  }
  if (input.is(Kind::real)) {
    return std::isnan(input.real()) ? fallback
                                    : Value::of(truncate(input.real()));
  }
  if (!input.is_string()) {
    return fallback;
  }
  int64_t base = arguments.integer(1, 10);
  if (base == 0 || (base >= 2 && base <= 36)) {
    if (auto value = parse_integer(input.view(), static_cast<int>(base))) {
      return Value::of(*value);
    }
  }
  // So that "42.23" gives 42.
  std::optional<double> real = parse_real(input.view());
  return real && std::isfinite(*real) ? Value::of(truncate(*real)) : fallback;
}

Value filter_float(Interpreter&, const Value& input, const Arguments& given) {
  Parameters arguments("float", given, {"default"});
  if (input.is(Kind::undefined)) {
    fault(input.absence());
  }
  if (input.is_number()) {
    return Value::of(input.real());
  }
  if (input.is_string()) {
    if (auto value = parse_real(input.view())) {
      return Value::of(*value);
    }
  }
  return arguments.has(0) ? arguments[0] : Value::of(0.0);
}

// ceil or floor at a number of digits, in Python's arithmetic.
Value round_towards(const Value& input, const Value& digits, bool up) {
  Value unit =
      apply_arithmetic(Operator::power, Value::of(int64_t{10}), digits);
  Value scaled = apply_arithmetic(Operator::multiply, input, unit);
  double value = scaled.real();
  Value whole =
      scaled.is_integral()
          ? scaled
          : Value::of(truncate(up ? std::ceil(value) : std::floor(value)));
  return apply_arithmetic(Operator::divide, whole, unit);
}

Value filter_round(Interpreter&, const Value& input, const Arguments& given) {
  Parameters arguments("round", given, {"precision", "method"});
  int64_t digits = arguments.integer(0, 0);
  std::string_view method = arguments.text(1, "common");
  if (method != "common" && method != "ceil" && method != "floor") {
    fault("round: argument 'method' must be common, ceil or floor");
  }
  if (!input.is_number()) {
    not_a_number("round", input);
  }
  if (method != "common") {
    return round_towards(input, Value::of(digits), method == "ceil");
  }
  return input.is_integral() ? Value::of(round_integer(input.integer(), digits))
                             : Value::of(round_real(input.real(), digits));
}

Value filter_filesizeformat(
    Interpreter&, const Value& input, const Arguments& given
) {
  Parameters arguments("filesizeformat", given, {"binary"});
  bool binary = arguments.truth(0, false);
  std::optional<double> size = input.is_number()   ? std::optional(input.real())
                               : input.is_string() ? parse_real(input.view())
                                                   : std::nullopt;
  if (!size) {
    not_a_number("filesizeformat", input);
  }
  double base = binary ? 1024 : 1000;
  if (*size == 1) {
    return Value::of("1 Byte");
  }
  if (*size < base) {
    return Value::of(fmt::format("{} Bytes", truncate(*size)));
  }
  constexpr std::string_view kPrefixes = "kMGTPEZY";
  double unit = base;
  for (size_t i = 0;; ++i) {
    unit *= base;
    if (*size < unit || i + 1 == kPrefixes.size()) {
      char letter = binary && i == 0 ? 'K' : kPrefixes[i];
      return Value::of(fmt::format(
          "{:.1f} {}{}", base * *size / unit, letter, binary ? "iB" : "B"
      ));
    }
  }
}

}  // namespace

void add_number_filters(FilterTable& table) {
  table["abs"] = {filter_abs};
  table["int"] = {filter_int};
  table["float"] = {filter_float};
  table["round"] = {filter_round};
  table["filesizeformat"] = {filter_filesizeformat};
}

}  // namespace mlxcel::chat
