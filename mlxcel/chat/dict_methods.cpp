#include <array>

#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/methods.h"

namespace mlxcel::chat {

namespace {

Value dict_get(Interpreter&, const Value& self, const Arguments& given) {
  Parameters arguments("get", given, {"", ""}, 1);
  if (const Value* value = self.dict().find(arguments[0])) {
    return *value;
  }
  return arguments.has(1) ? arguments[1] : Value::none();
}

Value dict_items(Interpreter&, const Value& self, const Arguments& given) {
  Parameters::none("items", given);
  std::vector<Value> items;
  items.reserve(self.dict().entries().size());
  for (const auto& [key, value] : self.dict().entries()) {
    items.push_back(Value::tuple({key, value}));
  }
  return Value::view("dict_items", std::move(items));
}

Value dict_keys(Interpreter&, const Value& self, const Arguments& given) {
  Parameters::none("keys", given);
  return Value::view("dict_keys", to_items(self));
}

Value dict_values(Interpreter&, const Value& self, const Arguments& given) {
  Parameters::none("values", given);
  std::vector<Value> values;
  values.reserve(self.dict().entries().size());
  for (const auto& [key, value] : self.dict().entries()) {
    values.push_back(value);
  }
  return Value::view("dict_values", std::move(values));
}

Value dict_copy(Interpreter&, const Value& self, const Arguments& given) {
  Parameters::none("copy", given);
  return self;
}

Value dict_fromkeys(Interpreter&, const Value&, const Arguments& given) {
  Parameters arguments("fromkeys", given, {"", ""}, 1);
  std::vector<std::pair<Value, Value>> entries;
  for (const Value& key : to_items(arguments[0])) {
    entries.emplace_back(key, arguments.has(1) ? arguments[1] : Value::none());
  }
  return Value::dict(std::move(entries));
}

constexpr std::array<MethodEntry, 6> kDictMethods = {{
    {"get", {dict_get}},
    {"items", {dict_items}},
    {"keys", {dict_keys}},
    {"values", {dict_values}},
    {"copy", {dict_copy}},
    {"fromkeys", {dict_fromkeys}},
}};

}  // namespace

const MethodInfo* find_dict_method(std::string_view name) {
  for (const MethodEntry& entry : kDictMethods) {
    if (entry.name == name) {
      return &entry.info;
    }
  }
  return nullptr;
}

}  // namespace mlxcel::chat
