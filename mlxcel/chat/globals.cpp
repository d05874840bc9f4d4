#include <fmt/format.h>

#include <array>
#include <ctime>
#include <map>

#include "mlxcel/chat/budget.h"
#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/interpreter.h"

// The functions that a template finds without being given them.

namespace mlxcel::chat {

namespace {

using Entries = std::vector<std::pair<Value, Value>>;
using FunctionPointer = Value (*)(Interpreter&, Arguments&);

struct BuiltIn final : Callable {
  BuiltIn(std::string n, FunctionPointer f) : name(std::move(n)), function(f) {}

  std::string describe() const override {
    return fmt::format("<function {}>", name);
  }
  Value attribute(std::string_view member) const override;
  Value call(Interpreter& interpreter, Arguments& arguments) override {
    return function(interpreter, arguments);
  }

  std::string name;
  FunctionPointer function;
};

Value make_built_in(const char* name, FunctionPointer function) {
  return Value::of(
      std::shared_ptr<Callable>(std::make_shared<BuiltIn>(name, function))
  );
}

Value range(Interpreter&, Arguments& given) {
  constexpr int64_t kMaxRange = 100'000;
  Parameters arguments("range", given, {"", "", ""}, 1);
  int64_t start = arguments.has(1) ? arguments.integer(0, 0) : 0;
  int64_t stop = arguments.integer(arguments.has(1) ? 1 : 0, 0);
  int64_t step = arguments.integer(2, 1);
  if (step == 0) {
    fault("range: the step must not be 0");
  }
  if (Range(start, stop, step).size() > kMaxRange) {
    limit_fault(fmt::format("a range of more than {} items", kMaxRange));
  }
  return Value::range(start, stop, step);
}

// dict(other, name=value): of a dict or of pairs.
Entries dict_entries(const Arguments& given) {
  Entries entries;
  if (given.positional.size() > 1) {
    fault("dict: at most one positional argument");
  }
  if (!given.positional.empty()) {
    const Value& source = given.positional[0];
    if (source.is(Kind::dict)) {
      entries = source.dict().entries();
    } else {
      for (const Value& pair : to_items(source)) {
        std::vector<Value> parts = to_items(pair);
        if (parts.size() != 2) {
          fault("dict: expected pairs of a key and a value");
        }
        entries.emplace_back(parts[0], parts[1]);
      }
    }
  }
  for (const auto& [name, value] : given.named) {
    entries.emplace_back(Value::of(name), value);
  }
  return entries;
}

Value dict(Interpreter&, Arguments& given) {
  return Value::dict(dict_entries(given));
}

Value dict_from_keys(Interpreter&, Arguments& given) {
  Parameters arguments("fromkeys", given, {"", ""}, 1);
  Entries entries;
  for (const Value& key : to_items(arguments[0])) {
    entries.emplace_back(key, arguments.has(1) ? arguments[1] : Value::none());
  }
  return Value::dict(std::move(entries));
}

Value BuiltIn::attribute(std::string_view member) const {
  return name == "dict" && member == "fromkeys"
             ? make_built_in("fromkeys", dict_from_keys)
             : Value();
}

Value name_space(Interpreter& interpreter, Arguments& given) {
  std::vector<std::pair<std::string, Value>> attributes;
  // Through a dict, so that a repeated name keeps its last value.
  Value all = Value::dict(dict_entries(given));
  for (const auto& [key, value] : all.dict().entries()) {
    if (!key.is_string()) {
      fault("namespace: a name is no string");
    }
    attributes.emplace_back(std::string(key.view()), value);
  }
  return interpreter.make_space(attributes);
}

Value raise_exception(Interpreter&, Arguments& given) {
  Parameters arguments("raise_exception", given, {"message"}, 1);
  throw Fault(Fault::Kind::rejected, to_string(arguments[0]));
}

struct Joiner final : Callable {
  explicit Joiner(const Value& s) : separator(s) {
    depth = depth_around({s});
  }
  std::string describe() const override {
    return "<Joiner>";
  }
  Value call(Interpreter&, Arguments& given) override {
    Parameters::none("joiner", given);
    return std::exchange(used, true) ? separator : Value::of("");
  }

  Value separator;
  bool used = false;
};

Value joiner(Interpreter&, Arguments& given) {
  Parameters arguments("joiner", given, {"sep"});
  return Value::of(std::shared_ptr<Callable>(std::make_shared<Joiner>(
      arguments.has(0) ? arguments[0] : Value::of(", ")
  )));
}

struct Cycler final : Callable, std::enable_shared_from_this<Cycler> {
  explicit Cycler(std::vector<Value> all) : items(std::move(all)) {
    depth = depth_around(items);
  }
  std::string describe() const override {
    return "<Cycler>";
  }
  Value attribute(std::string_view name) const override;
  Value call(Interpreter&, Arguments&) override {
    fault("a cycler is not called, but its next()");
  }

  std::vector<Value> items;
  mutable size_t position = 0;
};

struct CyclerMethod final : Callable {
  CyclerMethod(std::shared_ptr<const Cycler> c, bool n)
      : cycler(std::move(c)), is_next(n) {
    depth = cycler->depth;
  }
  std::string describe() const override {
    return "<bound method of Cycler>";
  }
  Value call(Interpreter&, Arguments& given) override {
    Parameters::none("next", given);
    if (!is_next) {
      cycler->position = 0;
      return Value::none();
    }
    Value item = cycler->items[cycler->position];
    cycler->position = (cycler->position + 1) % cycler->items.size();
    return item;
  }

  std::shared_ptr<const Cycler> cycler;
  bool is_next;
};

Value Cycler::attribute(std::string_view name) const {
  if (name == "current") {
    return items[position];
  }
  if (name == "next" || name == "reset") {
    return Value::of(std::shared_ptr<Callable>(
        std::make_shared<CyclerMethod>(shared_from_this(), name == "next")
    ));
  }
  return Value();
}

Value cycler(Interpreter&, Arguments& given) {
  if (given.positional.empty() || !given.named.empty()) {
    fault("cycler: needs the items to cycle through");
  }
  return Value::of(
      std::shared_ptr<Callable>(std::make_shared<Cycler>(given.positional))
  );
}

Value lipsum(Interpreter&, Arguments&) {
  fault("lipsum is not supported");
}

// One directive at a time, so that its result fits the buffer.
void append_time(std::string& out, const std::tm& time, std::string directive) {
  char letter = directive.back();
  if (letter == 'f') {
    out += "000000";  // whole seconds
    return;
  }
  if (letter == 'z' || letter == 'Z') {
    return;  // local time without a zone
  }
  std::array<char, 256> buffer;
  size_t size =
      std::strftime(buffer.data(), buffer.size(), directive.c_str(), &time);
  out.append(buffer.data(), size);
}

Value strftime_now(Interpreter& interpreter, Arguments& given) {
  constexpr std::string_view kLetters =
      "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYfzZ%";
  Parameters arguments("strftime_now", given, {"format"}, 1);
  std::string_view format = arguments.text(0);
  std::time_t now = interpreter.now()
                        ? static_cast<std::time_t>(*interpreter.now())
                        : std::time(nullptr);
  std::tm time{};
  localtime_r(&now, &time);
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    std::string directive = "%";
    while (++i < format.size() &&
           std::string_view("-_0^#EO").find(format[i]) !=
               std::string_view::npos &&
           directive.size() < 4) {
      directive += format[i];
    }
    if (i >= format.size() ||
        kLetters.find(format[i]) == std::string_view::npos) {
      fault("strftime_now: unknown directive in the format");
    }
    append_time(out, time, directive + format[i]);
    check_text_size(out.size());
  }
  return Value::of(std::move(out));
}

}  // namespace

Value find_global_function(std::string_view name) {
  static const std::map<std::string_view, Value> all = {
      {"range", make_built_in("range", range)},
      {"dict", make_built_in("dict", dict)},
      {"namespace", make_built_in("namespace", name_space)},
      {"raise_exception", make_built_in("raise_exception", raise_exception)},
      {"strftime_now", make_built_in("strftime_now", strftime_now)},
      {"joiner", make_built_in("joiner", joiner)},
      {"cycler", make_built_in("cycler", cycler)},
      {"lipsum", make_built_in("lipsum", lipsum)},
  };
  auto found = all.find(name);
  return found == all.end() ? Value() : found->second;
}

}  // namespace mlxcel::chat
