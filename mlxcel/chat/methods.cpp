#include "mlxcel/chat/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "mlxcel/chat/budget.h"
#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/loop.h"

namespace mlxcel::chat {

namespace {

struct BoundMethod final : Callable {
  BoundMethod(const Value& s, std::string_view n, const MethodInfo& i)
      : self(s), name(n), info(i) {
    depth = depth_around({s});
  }
  std::string describe() const override {
    return fmt::format(
        "<built-in method {} of {} object>", name, type_name(self)
    );
  }
  Value call(Interpreter& interpreter, Arguments& arguments) override {
    return info.call(interpreter, self, arguments);
  }

  Value self;
  std::string name;
  const MethodInfo& info;
};

template <size_t N>
const MethodInfo* find(
    const std::array<MethodEntry, N>& entries, std::string_view name
) {
  for (const MethodEntry& entry : entries) {
    if (entry.name == name) {
      return &entry.info;
    }
  }
  return nullptr;
}

// Of lists, tuples and ranges.

Value sequence_copy(Interpreter&, const Value& self, const Arguments& given) {
  Parameters::none("copy", given);
  return self;
}

Value sequence_count(Interpreter&, const Value& self, const Arguments& given) {
  Parameters arguments("count", given, {""}, 1);
  int64_t count = 0;
  Cursor cursor(self);
  for (Value item; cursor.next(item);) {
    count += equal(item, arguments[0]);
  }
  return Value::of(count);
}

Value sequence_index(Interpreter&, const Value& self, const Arguments& given) {
  Parameters arguments("index", given, {"", "", ""}, 1);
  int64_t length = length_of(self);
  auto clamp = [length](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + length : i, 0, length);
  };
  int64_t begin = clamp(arguments.integer(1, 0));
  int64_t end = clamp(arguments.integer(2, length));
  std::vector<Value> items = to_items(self);
  for (int64_t i = begin; i < end; ++i) {
    if (equal(items[static_cast<size_t>(i)], arguments[0])) {
      return Value::of(i);
    }
  }
  fault("index: the value is not in the list");
}

constexpr std::array<MethodEntry, 3> kListMethods = {{
    {"copy", {sequence_copy}},
    {"count", {sequence_count}},
    {"index", {sequence_index}},
}};

constexpr std::array<MethodEntry, 2> kSequenceMethods = {{
    {"count", {sequence_count}},
    {"index", {sequence_index}},
}};

// Of numbers.

Value conjugate(Interpreter&, const Value& self, const Arguments& given) {
  Parameters::none("conjugate", given);
  return self.is(Kind::boolean) ? Value::of(self.integer()) : self;
}

uint64_t magnitude(const Value& value) {
  int64_t number = value.integer();
  return number < 0 ? 0 - static_cast<uint64_t>(number)
                    : static_cast<uint64_t>(number);
}

Value bit_length(Interpreter&, const Value& self, const Arguments& given) {
  Parameters::none("bit_length", given);
  return Value::of(static_cast<int64_t>(std::bit_width(magnitude(self))));
}

Value bit_count(Interpreter&, const Value& self, const Arguments& given) {
  Parameters::none("bit_count", given);
  return Value::of(static_cast<int64_t>(std::popcount(magnitude(self))));
}

Value is_integer(Interpreter&, const Value& self, const Arguments& given) {
  Parameters::none("is_integer", given);
  double value = self.real();
  return Value::of(std::isfinite(value) && std::floor(value) == value);
}

constexpr std::array<MethodEntry, 3> kIntegerMethods = {{
    {"bit_count", {bit_count}},
    {"bit_length", {bit_length}},
    {"conjugate", {conjugate}},
}};

constexpr std::array<MethodEntry, 2> kRealMethods = {{
    {"conjugate", {conjugate}},
    {"is_integer", {is_integer}},
}};

// Of the loop variable.

Value loop_cycle(Interpreter&, const Value& self, const Arguments& given) {
  return static_cast<Loop&>(self.callable()).cycle(given);
}

Value loop_changed(Interpreter&, const Value& self, const Arguments& given) {
  return static_cast<Loop&>(self.callable()).changed(given);
}

constexpr std::array<MethodEntry, 2> kLoopMethods = {{
    {"changed", {loop_changed}},
    {"cycle", {loop_cycle}},
}};

}  // namespace

const MethodInfo* find_method(const Value& object, std::string_view name) {
  switch (object.kind()) {
    case Kind::string:
      return find_string_method(name);
    case Kind::dict:
      return find_dict_method(name);
    case Kind::list:
      return find(kListMethods, name);
    case Kind::tuple:
    case Kind::range:
      return find(kSequenceMethods, name);
    case Kind::boolean:
    case Kind::integer:
      return find(kIntegerMethods, name);
    case Kind::real:
      return find(kRealMethods, name);
    case Kind::loop:
      return find(kLoopMethods, name);
    default:
      return nullptr;
  }
}

bool is_hidden_attribute(const Value& object, std::string_view name) {
  constexpr std::string_view kDictChanges[] = {
      "clear", "pop", "popitem", "setdefault", "update"};
  constexpr std::string_view kListChanges[] = {
      "append",
      "clear",
      "extend",
      "insert",
      "pop",
      "remove",
      "reverse",
      "sort"};
  if (name.size() > 4 && name.substr(0, 2) == "__" &&
      name.substr(name.size() - 2) == "__") {
    return true;
  }
  auto in = [name](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) !=
           std::end(names);
  };
  return (object.is(Kind::dict) && in(kDictChanges)) ||
         (object.is(Kind::list) && in(kListChanges));
}

Value find_property(const Value& object, std::string_view name) {
  if (object.is_number()) {
    bool integral = object.is_integral();
    if (name == "real" || (integral && name == "numerator")) {
      return integral ? Value::of(object.integer()) : object;
    }
    if (name == "imag") {
      return integral ? Value::of(int64_t{0}) : Value::of(0.0);
    }
    if (integral && name == "denominator") {
      return Value::of(int64_t{1});
    }
  }
  if (object.is(Kind::range)) {
    const Range& range = object.range();
    if (name == "start") {
      return Value::of(range.start);
    }
    if (name == "stop") {
      return Value::of(range.stop);
    }
    if (name == "step") {
      return Value::of(range.step);
    }
  }
  if (object.is(Kind::tuple) && object.sequence().group) {
    if (name == "grouper") {
      return object.items()[0];
    }
    if (name == "list") {
      return object.items()[1];
    }
  }
  return Value();
}

Value bind_method(
    const Value& object, std::string_view name, const MethodInfo& info
) {
  return Value::of(std::shared_ptr<Callable>(
      std::make_shared<BoundMethod>(object, name, info)
  ));
}

}  // namespace mlxcel::chat
