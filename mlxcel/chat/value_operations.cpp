#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mlxcel/chat/budget.h"
#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/number.h"
#include "mlxcel/chat/text.h"
#include "mlxcel/chat/value.h"

namespace mlxcel::chat {

namespace {

constexpr int kMaxPrintDepth = 500;

int compare_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) {
    return a.integer() < b.integer() ? -1 : a.integer() > b.integer();
  }
  // Exact where long double holds any 64-bit integer.
  auto wide = [](const Value& v) {
    return v.is_integral() ? static_cast<long double>(v.integer())
                           : static_cast<long double>(v.real());
  };
  long double x = wide(a);
  long double y = wide(b);
  return x < y ? -1 : x > y;
}

bool is_nan(const Value& value) {
  return value.is(Kind::real) && std::isnan(value.real());
}

int compare_text(const Value& a, const Value& b) {
  count_work(std::min(a.view().size(), b.view().size()));
  // Bytes of UTF-8 order as code points do.
  return a.view().compare(b.view());
}

bool equal_items(const std::vector<Value>& a, const std::vector<Value>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), equal);
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.entries().size() != b.entries().size()) {
    return false;
  }
  return std::all_of(
      a.entries().begin(),
      a.entries().end(),
      [&b](const auto& entry) {
        const Value* other = b.find(entry.first);
        return other && equal(entry.second, *other);
      }
  );
}

bool equal_ranges(const Range& a, const Range& b) {
  int64_t size = a.size();
  return size == b.size() &&
         (size == 0 || (a.start == b.start && (size == 1 || a.step == b.step)));
}

// The order of kinds in KeyLess; the three numbers share one.
int key_rank(const Value& value) {
  return value.is_number() ? static_cast<int>(Kind::boolean)
                           : static_cast<int>(value.kind());
}

int compare_keys(const Value& a, const Value& b) {
  int rank = key_rank(a) - key_rank(b);
  if (rank != 0) {
    return rank;
  }
  if (a.is_number()) {
    if (is_nan(a) || is_nan(b)) {
      return is_nan(a) - is_nan(b);
    }
    return compare_numbers(a, b);
  }
  switch (a.kind()) {
    case Kind::string:
      return compare_text(a, b);
    case Kind::tuple: {
      const auto& x = a.items();
      const auto& y = b.items();
      for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
        if (int order = compare_keys(x[i], y[i])) {
          return order;
        }
      }
      return x.size() < y.size() ? -1 : x.size() > y.size();
    }
    case Kind::none:
    case Kind::undefined:
      return 0;
    default: {
      std::less<const void*> less;
      return less(a.identity(), b.identity())
                 ? -1
                 : less(b.identity(), a.identity());
    }
  }
}

}  // namespace

bool is_set_view(const Value& value) {
  return value.is(Kind::view) &&
         std::string_view(value.dict_view().type) != "dict_values";
}

bool is_subset(const Value& a, const Value& b) {
  if (!is_set_view(a) || !is_set_view(b)) {
    return false;
  }
  const std::vector<Value>& others = b.items();
  return std::all_of(
      a.items().begin(),
      a.items().end(),
      [&others](const Value& item) {
        return std::any_of(
            others.begin(),
            others.end(),
            [&item](const Value& other) { return equal(item, other); }
        );
      }
  );
}

const char* type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::undefined:
      return "Undefined";
    case Kind::none:
      return "NoneType";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::real:
      return "float";
    case Kind::string:
      return value.text().markup ? "Markup" : "str";
    case Kind::list:
      return "list";
    case Kind::tuple:
      return "tuple";
    case Kind::dict:
      return "dict";
    case Kind::range:
      return "range";
    case Kind::view:
      return value.dict_view().type;
    case Kind::iterator:
      return value.iterator().type;
    case Kind::space:
      return "Namespace";
    case Kind::loop:
      return "LoopContext";
    case Kind::callable:
      return "function";
  }
  return "object";
}

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return value.integer() != 0;
    case Kind::real:
      return value.real() != 0;
    case Kind::string:
      return !value.view().empty();
    case Kind::list:
    case Kind::tuple:
    case Kind::view:
      return !value.items().empty();
    case Kind::dict:
      return !value.dict().entries().empty();
    case Kind::range:
      return value.range().size() > 0;
    default:
      return true;
  }
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    return !is_nan(a) && !is_nan(b) && compare_numbers(a, b) == 0;
  }
  if (a.kind() != b.kind()) {
    return false;
  }
  count_work(0);
  switch (a.kind()) {
    case Kind::string:
      return a.view().size() == b.view().size() && compare_text(a, b) == 0;
    case Kind::list:
    case Kind::tuple:
      return equal_items(a.items(), b.items());
    case Kind::view:
      return a.identity() == b.identity() ||
             (is_subset(a, b) && is_subset(b, a));
    case Kind::dict:
      return equal_dicts(a.dict(), b.dict());
    case Kind::range:
      return equal_ranges(a.range(), b.range());
    case Kind::missing:
    case Kind::undefined:
    case Kind::none:
      return true;
    default:
      return a.identity() == b.identity();
  }
}

int compare(const Value& a, const Value& b, const char* symbol) {
  for (const Value* side : {&a, &b}) {
    if (side->is(Kind::undefined)) {
      fault(side->absence());
    }
  }
  if (a.is_number() && b.is_number()) {
    return compare_numbers(a, b);
  }
  if (a.is_string() && b.is_string()) {
    return compare_text(a, b);
  }
  if (a.kind() == b.kind() && (a.is(Kind::list) || a.is(Kind::tuple))) {
    const auto& x = a.items();
    const auto& y = b.items();
    for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
      if (!equal(x[i], y[i])) {
        return compare(x[i], y[i], symbol);
      }
    }
    return x.size() < y.size() ? -1 : x.size() > y.size();
  }
  fault(fmt::format(
      "'{}' is not supported between '{}' and '{}'",
      symbol,
      type_name(a),
      type_name(b)
  ));
}

bool KeyLess::operator()(const Value& a, const Value& b) const {
  return compare_keys(a, b) < 0;
}

void check_hashable(const Value& value) {
  if (value.is(Kind::tuple)) {
    for (const Value& item : value.items()) {
      check_hashable(item);
    }
    return;
  }
  bool plain_view = value.is(Kind::view) &&
                    std::string_view(value.dict_view().type) == "dict_values";
  if (value.is(Kind::list) || value.is(Kind::dict) ||
      (value.is(Kind::view) && !plain_view)) {
    fault(fmt::format("unhashable type: '{}'", type_name(value)));
  }
}

namespace {

void append_items(
    std::string& out,
    const std::vector<Value>& items,
    const char* brackets,
    int depth
) {
  out += brackets[0];
  for (size_t i = 0; i < items.size(); ++i) {
    out += i > 0 ? ", " : "";
    append_repr(out, items[i], depth + 1);
  }
  out += brackets[1];
}

void append_pairs(std::string& out, const Dict& dict, int depth) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    out += first ? "" : ", ";
    first = false;
    append_repr(out, key, depth + 1);
    out += ": ";
    append_repr(out, value, depth + 1);
  }
  out += '}';
}

void append_space(std::string& out, const Space& space, int depth) {
  out += "<Namespace {";
  bool first = true;
  for (const auto& [name, value] : space.attributes) {
    out += first ? "" : ", ";
    first = false;
    out += quote_python(name) + ": ";
    append_repr(out, value, depth + 1);
  }
  out += "}>";
}

void append_range(std::string& out, const Range& range) {
  out += fmt::format("range({}, {}", range.start, range.stop);
  out += range.step == 1 ? ")" : fmt::format(", {})", range.step);
}

}  // namespace

void append_repr(std::string& out, const Value& value, int depth) {
  if (depth > kMaxPrintDepth) {
    limit_fault("a value nested too deeply to be printed");
  }
  count_work(0);
  check_text_size(out.size());
  switch (value.kind()) {
    case Kind::missing:
    case Kind::undefined:
      out += "Undefined";
      return;
    case Kind::string:
      if (value.text().markup) {
        out += "Markup(" + quote_python(value.view()) + ")";
      } else {
        out += quote_python(value.view());
      }
      return;
    case Kind::list:
      append_items(out, value.items(), "[]", depth);
      return;
    case Kind::tuple:
      append_items(out, value.items(), "()", depth);
      if (value.items().size() == 1) {
        out.insert(out.size() - 1, 1, ',');
      }
      return;
    case Kind::dict:
      append_pairs(out, value.dict(), depth);
      return;
    case Kind::range:
      append_range(out, value.range());
      return;
    case Kind::view:
      out += value.dict_view().type;
      out += '(';
      append_items(out, value.items(), "[]", depth);
      out += ')';
      return;
    case Kind::iterator:
      out += fmt::format("<{} object>", value.iterator().type);
      return;
    case Kind::space:
      append_space(out, value.space(), depth);
      return;
    case Kind::loop:
    case Kind::callable:
      out += value.callable().describe();
      return;
    default:
      append_string(out, value);
  }
}

void append_string(std::string& out, const Value& value) {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::undefined:
      return;
    case Kind::none:
      out += "None";
      return;
    case Kind::boolean:
      out += value.boolean() ? "True" : "False";
      return;
    case Kind::integer:
      out += fmt::format_int(value.integer()).c_str();
      return;
    case Kind::real:
      out += format_real(value.real());
      return;
    case Kind::string:
      out += value.view();
      check_text_size(out.size());
      return;
    default:
      append_repr(out, value);
  }
}

std::string to_string(const Value& value) {
  std::string out;
  append_string(out, value);
  return out;
}

std::string repr(const Value& value) {
  std::string out;
  append_repr(out, value);
  return out;
}

Cursor::Cursor(const Value& value) : value_(value) {
  if (!is_iterable(value)) {
    fault(fmt::format("'{}' object is not iterable", type_name(value)));
  }
}

bool Cursor::next(Value& item) {
  count_work(0);
  switch (value_.kind()) {
    case Kind::list:
    case Kind::tuple:
    case Kind::view:
      if (position_ >= value_.items().size()) {
        return false;
      }
      item = value_.items()[position_++];
      return true;
    case Kind::dict:
      if (position_ >= value_.dict().entries().size()) {
        return false;
      }
      item = value_.dict().entries()[position_++].first;
      return true;
    case Kind::string: {
      std::string_view text = value_.view();
      if (position_ >= text.size()) {
        return false;
      }
      size_t begin = position_;
      next_code_point(text, position_);
      item = Value::of(
          std::string(text.substr(begin, position_ - begin)),
          value_.text().markup
      );
      return true;
    }
    case Kind::range: {
      const Range& range = value_.range();
      if (static_cast<int64_t>(position_) >= range.size()) {
        return false;
      }
      item = Value::of(
          range.start + static_cast<int64_t>(position_++) * range.step
      );
      return true;
    }
    case Kind::iterator:
      return value_.iterator().next(item);
    default:
      return false;
  }
}

std::vector<Value> to_items(const Value& value) {
  if (value.is(Kind::list) || value.is(Kind::tuple) || value.is(Kind::view)) {
    count_work(value.items().size() * sizeof(Value));
    return value.items();
  }
  std::vector<Value> items;
  Cursor cursor(value);
  for (Value item; cursor.next(item);) {
    items.push_back(std::move(item));
    check_item_count(items.size());
  }
  return items;
}

bool is_iterable(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::string:
    case Kind::list:
    case Kind::tuple:
    case Kind::dict:
    case Kind::range:
    case Kind::view:
    case Kind::iterator:
      return true;
    default:
      return false;
  }
}

bool has_length(const Value& value) {
  return is_iterable(value) && !value.is(Kind::iterator);
}

int64_t length_of(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::string:
      return static_cast<int64_t>(value.text().length());
    case Kind::list:
    case Kind::tuple:
    case Kind::view:
      return static_cast<int64_t>(value.items().size());
    case Kind::dict:
      return static_cast<int64_t>(value.dict().entries().size());
    case Kind::range:
      return value.range().size();
    default:
      fault(fmt::format("object of type '{}' has no len()", type_name(value)));
  }
}

}  // namespace mlxcel::chat
