#pragma once

#include <string_view>

#include "mlxcel/chat/arguments.h"
#include "mlxcel/chat/value.h"

namespace mlxcel::chat {

class Interpreter;

/// `value|name(arguments)`.
struct FilterInfo {
  Value (*apply)(Interpreter&, const Value& input, const Arguments&);
};

/// `value is name(arguments)`.
struct TestInfo {
  bool (*apply)(Interpreter&, const Value& input, const Arguments&);
};

/// The filter or test of that name, or null.
const FilterInfo* find_filter(std::string_view name);
const TestInfo* find_test(std::string_view name);

}  // namespace mlxcel::chat
