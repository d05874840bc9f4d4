#include <fmt/format.h>

#include <map>

#include "mlxcel/chat/filters.h"
#include "mlxcel/chat/interpreter.h"
#include "mlxcel/chat/methods.h"
#include "mlxcel/chat/operators.h"

// The tests behind `is`.

namespace mlxcel::chat {

namespace {

using Apply = bool (*)(Interpreter&, const Value&, const Arguments&);

bool remainder_is(const Value& value, const Value& divisor, int64_t wanted) {
  Value rest = apply_arithmetic(Operator::modulo, value, divisor);
  return equal(rest, Value::of(wanted));
}

bool is_odd(Interpreter&, const Value& value, const Arguments& given) {
  Parameters::none("odd", given);
  return remainder_is(value, Value::of(int64_t{2}), 1);
}

bool is_even(Interpreter&, const Value& value, const Arguments& given) {
  Parameters::none("even", given);
  return remainder_is(value, Value::of(int64_t{2}), 0);
}

bool is_divisible(Interpreter&, const Value& value, const Arguments& given) {
  Parameters arguments("divisibleby", given, {"num"}, 1);
  return remainder_is(value, arguments[0], 0);
}

// Tests that ask for the kind alone.
template <Kind... kinds>
bool is_kind(Interpreter&, const Value& value, const Arguments& given) {
  Parameters::none("test", given);
  return (value.is(kinds) || ...);
}

bool is_defined(Interpreter&, const Value& value, const Arguments& given) {
  Parameters::none("defined", given);
  return !value.is(Kind::undefined);
}

template <bool wanted>
bool is_exactly(Interpreter&, const Value& value, const Arguments& given) {
  Parameters::none("test", given);
  return value.is(Kind::boolean) && value.boolean() == wanted;
}

bool is_filter(Interpreter&, const Value& value, const Arguments& given) {
  Parameters::none("filter", given);
  check_hashable(value);
  return value.is_string() && find_filter(value.view());
}

bool is_test(Interpreter&, const Value& value, const Arguments& given) {
  Parameters::none("test", given);
  check_hashable(value);
  return value.is_string() && find_test(value.view());
}

template <bool upper>
bool is_case(
    Interpreter& interpreter, const Value& value, const Arguments& given
) {
  const MethodInfo* method = find_string_method(upper ? "isupper" : "islower");
  return truth(method->call(interpreter, Value::of(to_string(value)), given));
}

// Has a length and can be indexed.
bool is_sequence(Interpreter&, const Value& value, const Arguments& given) {
  Parameters::none("sequence", given);
  return has_length(value) && !value.is(Kind::view);
}

bool is_walkable(Interpreter&, const Value& value, const Arguments& given) {
  Parameters::none("iterable", given);
  return is_iterable(value) || value.is(Kind::loop);
}

bool is_same(Interpreter&, const Value& value, const Arguments& given) {
  Parameters arguments("sameas", given, {"other"}, 1);
  return value.same_as(arguments[0]);
}

bool is_escaped(Interpreter&, const Value& value, const Arguments& given) {
  Parameters::none("escaped", given);
  return value.is_string() && value.text().markup;
}

bool is_in(Interpreter&, const Value& value, const Arguments& given) {
  Parameters arguments("in", given, {"seq"}, 1);
  return contains(arguments[0], value);
}

template <Operator op>
bool is_compared(Interpreter&, const Value& value, const Arguments& given) {
  Parameters arguments("comparison", given, {""}, 1);
  return apply_comparison(op, value, arguments[0]);
}

constexpr Apply kIsNumber = is_kind<Kind::boolean, Kind::integer, Kind::real>;
// An undefined value can be called, which is when it fails.
constexpr Apply kIsCallable =
    is_kind<Kind::callable, Kind::loop, Kind::undefined>;

const std::map<std::string_view, TestInfo>& tests() {
  static const std::map<std::string_view, TestInfo> all = {
      {"odd", {is_odd}},
      {"even", {is_even}},
      {"divisibleby", {is_divisible}},
      {"defined", {is_defined}},
      {"undefined", {is_kind<Kind::undefined>}},
      {"filter", {is_filter}},
      {"test", {is_test}},
      {"none", {is_kind<Kind::none>}},
      {"boolean", {is_kind<Kind::boolean>}},
      {"false", {is_exactly<false>}},
      {"true", {is_exactly<true>}},
      {"integer", {is_kind<Kind::integer>}},
      {"float", {is_kind<Kind::real>}},
      {"lower", {is_case<false>}},
      {"upper", {is_case<true>}},
      {"string", {is_kind<Kind::string>}},
      {"mapping", {is_kind<Kind::dict>}},
      {"number", {kIsNumber}},
      {"sequence", {is_sequence}},
      {"iterable", {is_walkable}},
      {"callable", {kIsCallable}},
      {"sameas", {is_same}},
      {"escaped", {is_escaped}},
      {"in", {is_in}},
      {"==", {is_compared<Operator::equal>}},
      {"eq", {is_compared<Operator::equal>}},
      {"equalto", {is_compared<Operator::equal>}},
      {"!=", {is_compared<Operator::not_equal>}},
      {"ne", {is_compared<Operator::not_equal>}},
      {">", {is_compared<Operator::greater>}},
      {"gt", {is_compared<Operator::greater>}},
      {"greaterthan", {is_compared<Operator::greater>}},
      {">=", {is_compared<Operator::greater_equal>}},
      {"ge", {is_compared<Operator::greater_equal>}},
      {"<", {is_compared<Operator::less>}},
      {"lt", {is_compared<Operator::less>}},
      {"lessthan", {is_compared<Operator::less>}},
      {"<=", {is_compared<Operator::less_equal>}},
      {"le", {is_compared<Operator::less_equal>}},
  };
  return all;
}

}  // namespace

const TestInfo* find_test(std::string_view name) {
  auto found = tests().find(name);
  return found == tests().end() ? nullptr : &found->second;
}

}  // namespace mlxcel::chat
