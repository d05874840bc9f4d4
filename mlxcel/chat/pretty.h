#pragma once

#include <string>

#include "mlxcel/chat/value.h"

namespace mlxcel::chat {

/// The value as Python's pprint.pformat shows it: sorted dicts, lines of 80
/// characters. Source: CPython 3.11, Lib/pprint.py.
std::string format_pretty(const Value& value);

}  // namespace mlxcel::chat
