#pragma once

#include <string_view>

#include "mlxcel/chat/arguments.h"
#include "mlxcel/chat/value.h"

namespace mlxcel::chat {

class Interpreter;

/// `object.name(arguments)`.
struct MethodInfo {
  Value (*call)(Interpreter&, const Value& self, const Arguments&);
};

struct MethodEntry {
  std::string_view name;
  MethodInfo info;
};

/// The method `name` of the type of `object`, or null.
const MethodInfo* find_method(const Value& object, std::string_view name);
/// Methods of single types, for find_method.
const MethodInfo* find_string_method(std::string_view name);
const MethodInfo* find_dict_method(std::string_view name);

/// An attribute that Python's types have but that is out of reach: what would
/// change a list or a dict, and what leads to the interpreter's insides.
bool is_hidden_attribute(const Value& object, std::string_view name);
/// An attribute that is no method (`range.start`, `group.list`), or a missing
/// value.
Value find_property(const Value& object, std::string_view name);
/// The method as a value of its own.
Value bind_method(
    const Value& object, std::string_view name, const MethodInfo& info
);

}  // namespace mlxcel::chat
