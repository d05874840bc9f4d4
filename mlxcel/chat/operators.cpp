#include "mlxcel/chat/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mlxcel/chat/budget.h"
#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/format.h"
#include "mlxcel/chat/number.h"
#include "mlxcel/chat/text.h"

namespace mlxcel::chat {

namespace {

const char* symbol(Operator op) {
  switch (op) {
    case Operator::add:
    case Operator::plus:
      return "+";
    case Operator::subtract:
    case Operator::negate:
      return "-";
    case Operator::multiply:
      return "*";
    case Operator::divide:
      return "/";
    case Operator::floor_divide:
      return "//";
    case Operator::modulo:
      return "%";
    case Operator::power:
      return "**";
    case Operator::less:
      return "<";
    case Operator::less_equal:
      return "<=";
    case Operator::greater:
      return ">";
    case Operator::greater_equal:
      return ">=";
    default:
      return "?";
  }
}

[[noreturn]] void unsupported(Operator op, const Value& a, const Value& b) {
  fault(fmt::format(
      "'{}' is not supported between '{}' and '{}'",
      symbol(op),
      type_name(a),
      type_name(b)
  ));
}

Value integer_arithmetic(Operator op, int64_t a, int64_t b) {
  bool divides = op == Operator::divide || op == Operator::floor_divide ||
                 op == Operator::modulo || (op == Operator::power && b < 0);
  if (divides && (op == Operator::power ? a : b) == 0) {
    fault("division by zero");
  }
  switch (op) {
    case Operator::add:
      return Value::of(add(a, b));
    case Operator::subtract:
      return Value::of(subtract(a, b));
    case Operator::multiply:
      return Value::of(multiply(a, b));
    case Operator::divide:
      return Value::of(static_cast<double>(static_cast<long double>(a) / b));
    case Operator::floor_divide:
      return Value::of(floor_divide(a, b));
    case Operator::modulo:
      return Value::of(floor_modulo(a, b));
    default:
      return b >= 0 ? Value::of(power(a, b))
                    : Value::of(std::pow(
                          static_cast<double>(a), static_cast<double>(b)
                      ));
  }
}

double real_power(double a, double b) {
  if (a == 0 && b < 0) {
    fault("division by zero");
  }
  double result = std::pow(a, b);
  if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) {
    fault("a power of a negative number is no real number");
  }
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
    fault("a power is too large");
  }
  return result;
}

Value real_arithmetic(Operator op, double a, double b) {
  bool divides = op == Operator::divide || op == Operator::floor_divide ||
                 op == Operator::modulo;
  if (divides && b == 0) {
    fault("division by zero");
  }
  switch (op) {
    case Operator::add:
      return Value::of(a + b);
    case Operator::subtract:
      return Value::of(a - b);
    case Operator::multiply:
      return Value::of(a * b);
    case Operator::divide:
      return Value::of(a / b);
    case Operator::floor_divide:
      return Value::of(floor_divide(a, b));
    case Operator::modulo:
      return Value::of(floor_modulo(a, b));
    default:
      return Value::of(real_power(a, b));
  }
}

Value join_text(const Value& a, const Value& b) {
  bool markup = a.text().markup || b.text().markup;
  auto part = [markup](const Value& v) {
    return markup && !v.text().markup ? escape_html(v.view())
                                      : std::string(v.view());
  };
  check_text_size(a.view().size() + b.view().size());
  if (!markup) {
    std::string out;
    out.reserve(a.view().size() + b.view().size());
    out += a.view();
    out += b.view();
    return Value::of(std::move(out));
  }
  return Value::of(part(a) + part(b), true);
}

Value repeat(const Value& value, int64_t times) {
  times = std::max<int64_t>(times, 0);
  auto total = static_cast<__int128>(length_of(value)) * times;
  if (value.is_string()) {
    total = static_cast<__int128>(value.view().size()) * times;
    check_text_size(static_cast<uint64_t>(std::min<__int128>(total, INT64_MAX))
    );
    auto size = static_cast<size_t>(total);
    std::string out(value.view().substr(0, size));
    out.reserve(size);
    while (out.size() < size) {
      out.append(out, 0, size - out.size());
    }
    return Value::of(std::move(out), value.text().markup);
  }
  check_item_count(static_cast<uint64_t>(std::min<__int128>(total, INT64_MAX)));
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(total));
  for (int64_t i = 0; total > 0 && i < times; ++i) {
    items.insert(items.end(), value.items().begin(), value.items().end());
  }
  return value.is(Kind::list) ? Value::list(std::move(items))
                              : Value::tuple(std::move(items));
}

bool can_repeat(const Value& value) {
  return value.is_string() || value.is(Kind::list) || value.is(Kind::tuple);
}

Value join_lists(const Value& a, const Value& b) {
  check_item_count(a.items().size() + b.items().size());
  std::vector<Value> items = a.items();
  items.insert(items.end(), b.items().begin(), b.items().end());
  return a.is(Kind::list) ? Value::list(std::move(items))
                          : Value::tuple(std::move(items));
}

void check_defined(const Value& value) {
  if (value.is(Kind::undefined)) {
    fault(value.absence());
  }
}

/// Where a slice goes, as Python's slice.indices computes it.
struct Span {
  int64_t start;
  int64_t stop;
  int64_t step;
  int64_t count;
};

int64_t bound(const Value& value, int64_t fallback) {
  if (value.is(Kind::none)) {
    return fallback;
  }
  if (!value.is_integral()) {
    fault(
        fmt::format("slice bounds must be integers, got '{}'", type_name(value))
    );
  }
  return value.integer();
}

Span resolve_slice(
    int64_t length, const Value& start, const Value& stop, const Value& step
) {
  int64_t by = bound(step, 1);
  if (by == 0) {
    fault("a slice step cannot be zero");
  }
  int64_t low = by > 0 ? 0 : -1;
  int64_t high = by > 0 ? length : length - 1;
  auto clamp = [&](const Value& value, int64_t fallback) {
    if (value.is(Kind::none)) {
      return fallback;
    }
    int64_t index = bound(value, fallback);
    index += index < 0 ? length : 0;
    return std::clamp(index, low, high);
  };
  int64_t from = clamp(start, by > 0 ? low : high);
  int64_t to = clamp(stop, by > 0 ? high : low);
  return {from, to, by, Range(from, to, by).size()};
}

std::string slice_text(const Text& text, const Span& span) {
  std::string_view bytes = text.bytes;
  std::string out;
  if (text.is_ascii()) {
    if (span.step == 1) {
      return std::string(bytes.substr(
          static_cast<size_t>(span.start), static_cast<size_t>(span.count)
      ));
    }
    for (int64_t i = 0; i < span.count; ++i) {
      out += bytes[static_cast<size_t>(span.start + i * span.step)];
    }
    return out;
  }
  size_t position = byte_offset(bytes, static_cast<size_t>(span.start));
  for (int64_t i = 0; i < span.count; ++i) {
    size_t end = position;
    next_code_point(bytes, end);
    out += bytes.substr(position, end - position);
    if (i + 1 == span.count) {
      break;
    }
    for (int64_t k = span.step; k > 0; --k) {
      next_code_point(bytes, position);
    }
    for (int64_t k = span.step; k < 0; ++k) {
      position = previous_position(bytes, position);
    }
  }
  return out;
}

// Views of keys and items compare as sets do.
bool compare_views(Operator op, const Value& left, const Value& right) {
  bool below = is_subset(left, right);
  bool above = is_subset(right, left);
  switch (op) {
    case Operator::less:
      return below && !above;
    case Operator::less_equal:
      return below;
    case Operator::greater:
      return above && !below;
    default:
      return above;
  }
}

}  // namespace

Value apply_arithmetic(Operator op, const Value& left, const Value& right) {
  if (left.is_integral() && right.is_integral()) {
    return integer_arithmetic(op, left.integer(), right.integer());
  }
  if (left.is_number() && right.is_number()) {
    return real_arithmetic(op, left.real(), right.real());
  }
  if (op == Operator::modulo && left.is_string()) {
    return Value::of(
        format_printf(left.view(), right, left.text().markup),
        left.text().markup
    );
  }
  if (!left.is(Kind::view)) {
    check_defined(left);
    check_defined(right);
  }
  if (op == Operator::add) {
    if (left.is_string() && right.is_string()) {
      return join_text(left, right);
    }
    if (left.kind() == right.kind() &&
        (left.is(Kind::list) || left.is(Kind::tuple))) {
      return join_lists(left, right);
    }
  }
  if (op == Operator::multiply) {
    if (can_repeat(left) && right.is_integral()) {
      return repeat(left, right.integer());
    }
    if (can_repeat(right) && left.is_integral()) {
      return repeat(right, left.integer());
    }
  }
  if (op == Operator::subtract &&
      (left.is(Kind::view) || right.is(Kind::view))) {
    fault("sets are not supported, as a difference of dict views makes one");
  }
  unsupported(op, left, right);
}

Value apply_sign(Operator op, const Value& value) {
  check_defined(value);
  if (value.is_integral()) {
    return Value::of(
        op == Operator::negate ? subtract(0, value.integer()) : value.integer()
    );
  }
  if (value.is(Kind::real)) {
    return Value::of(op == Operator::negate ? -value.real() : value.real());
  }
  fault(fmt::format(
      "'{}' is not supported for '{}'", symbol(op), type_name(value)
  ));
}

bool apply_comparison(Operator op, const Value& left, const Value& right) {
  switch (op) {
    case Operator::equal:
      return equal(left, right);
    case Operator::not_equal:
      return !equal(left, right);
    case Operator::in:
      return contains(right, left);
    case Operator::not_in:
      return !contains(right, left);
    default:
      break;
  }
  if (is_set_view(left) && is_set_view(right)) {
    return compare_views(op, left, right);
  }
  auto is_nan = [](const Value& v) {
    return v.is(Kind::real) && std::isnan(v.real());
  };
  int order = compare(left, right, symbol(op));
  if (is_nan(left) || is_nan(right)) {
    return false;
  }
  switch (op) {
    case Operator::less:
      return order < 0;
    case Operator::less_equal:
      return order <= 0;
    case Operator::greater:
      return order > 0;
    default:
      return order >= 0;
  }
}

bool contains(const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::string:
      if (!item.is_string()) {
        fault(fmt::format(
            "'in' on a string needs a string, got '{}'", type_name(item)
        ));
      }
      count_work(container.view().size());
      return find_text(container.view(), item.view()) != std::string_view::npos;
    case Kind::dict:
      return container.dict().find(item) != nullptr;
    default:
      break;
  }
  Cursor cursor(container);
  for (Value each; cursor.next(each);) {
    if (each.same_as(item) || equal(each, item)) {
      return true;
    }
  }
  return false;
}

Value slice(
    const Value& value, const Value& start, const Value& stop, const Value& step
) {
  check_defined(value);
  bool sequence = value.is_string() || value.is(Kind::list) ||
                  value.is(Kind::tuple) || value.is(Kind::range);
  if (!sequence) {
    fault(fmt::format("a '{}' cannot be sliced", type_name(value)));
  }
  Span span = resolve_slice(length_of(value), start, stop, step);
  if (value.is_string()) {
    return Value::of(slice_text(value.text(), span), value.text().markup);
  }
  if (value.is(Kind::range)) {
    const Range& range = value.range();
    auto bound_at = [&range](int64_t index) {
      return add(range.start, multiply(index, range.step));
    };
    return Value::range(
        bound_at(span.start),
        bound_at(span.stop),
        multiply(range.step, span.step)
    );
  }
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(span.count));
  for (int64_t i = 0; i < span.count; ++i) {
    items.push_back(value.items(
    )[static_cast<size_t>(span.start + i * span.step)]);
  }
  return value.is(Kind::list) ? Value::list(std::move(items))
                              : Value::tuple(std::move(items));
}

Value item_at(const Value& sequence, int64_t index) {
  int64_t length = length_of(sequence);
  index += index < 0 ? length : 0;
  if (index < 0 || index >= length) {
    return Value();
  }
  auto at = static_cast<size_t>(index);
  if (sequence.is(Kind::range)) {
    return Value::of(sequence.range().start + index * sequence.range().step);
  }
  if (!sequence.is_string()) {
    return sequence.items()[at];
  }
  const Text& text = sequence.text();
  size_t begin = text.is_ascii() ? at : byte_offset(text.bytes, at);
  size_t end = begin;
  next_code_point(text.bytes, end);
  return Value::of(text.bytes.substr(begin, end - begin), text.markup);
}

}  // namespace mlxcel::chat
