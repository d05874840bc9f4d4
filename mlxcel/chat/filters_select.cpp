#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/filter_functions.h"
#include "mlxcel/chat/interpreter.h"

// map, select, reject and their kin. In Jinja they are generators: always
// true, walked once, and what fails in them fails when they are walked. Here
// the items are computed at once and a failure is kept until it is reached.

namespace mlxcel::chat {

namespace {

// Runs `produce`, which adds items to a list, and makes the iterator.
template <typename Produce>
Value generate(Produce produce) {
  std::vector<Value> items;
  std::exception_ptr failure;
  try {
    produce(items);
  } catch (const Fault& fault) {
    if (fault.kind() == Fault::Kind::limit) {
      throw;
    }
    failure = std::current_exception();
  }
  return Value::iterator("generator", std::move(items), failure);
}

// The arguments behind the first `count` positional ones.
Arguments rest_of(const Arguments& given, size_t count) {
  Arguments rest;
  rest.positional.assign(
      given.positional.begin() + static_cast<std::ptrdiff_t>(count),
      given.positional.end()
  );
  rest.named = given.named;
  return rest;
}

std::string_view name_of(const Value& value, const char* what) {
  if (!value.is_string()) {
    fault(std::string("the name of a ") + what + " must be a string");
  }
  return value.view();
}

void map_attribute(
    Interpreter& interpreter,
    const Value& input,
    const Arguments& given,
    std::vector<Value>& items
) {
  Parameters arguments("map", given, {"attribute", "default"}, 1);
  AttributePath path(arguments[0]);
  Cursor cursor(input);
  for (Value item; cursor.next(item);) {
    items.push_back(path.get(interpreter, item, arguments[1]));
  }
}

Value filter_map(
    Interpreter& interpreter, const Value& input, const Arguments& given
) {
  return generate([&](std::vector<Value>& items) {
    if (!truth(input)) {
      return;
    }
    if (given.positional.empty()) {
      if (!given.find("attribute")) {
        fault("map: needs the name of a filter, or attribute=");
      }
      map_attribute(interpreter, input, given, items);
      return;
    }
    std::string_view name = name_of(given.positional[0], "filter");
    Arguments rest = rest_of(given, 1);
    Cursor cursor(input);
    for (Value item; cursor.next(item);) {
      items.push_back(interpreter.apply_filter(name, item, rest));
    }
  });
}

template <bool by_attribute, bool wanted>
Value selection(
    Interpreter& interpreter, const Value& input, const Arguments& given
) {
  return generate([&](std::vector<Value>& items) {
    if (!truth(input)) {
      return;
    }
    if (by_attribute && given.positional.empty()) {
      fault("the name of the attribute is missing");
    }
    AttributePath path(by_attribute ? given.positional[0] : Value::none());
    size_t at = by_attribute ? 1 : 0;
    bool tested = given.positional.size() > at;
    std::string_view name =
        tested ? name_of(given.positional[at], "test") : std::string_view();
    Arguments rest = tested ? rest_of(given, at + 1) : Arguments();
    Cursor cursor(input);
    for (Value item; cursor.next(item);) {
      Value judged = path.get(interpreter, item);
      bool passes =
          tested ? interpreter.apply_test(name, judged, rest) : truth(judged);
      if (passes == wanted) {
        items.push_back(item);
      }
    }
  });
}

}  // namespace

void add_select_filters(FilterTable& table) {
  table["map"] = {filter_map};
  table["select"] = {selection<false, true>};
  table["reject"] = {selection<false, false>};
  table["selectattr"] = {selection<true, true>};
  table["rejectattr"] = {selection<true, false>};
}

}  // namespace mlxcel::chat
