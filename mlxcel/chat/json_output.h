#pragma once

#include <optional>
#include <string>

#include "mlxcel/chat/value.h"

namespace mlxcel::chat {

/// The options of Python's json.dumps.
struct JsonStyle {
  bool ascii = false;  // \u escapes beyond ASCII
  bool sort_keys = false;
  std::optional<std::string> indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

/// An indentation of `width` blanks.
std::string json_indent(int64_t width);

/// The value as CPython's json.dumps writes it. Throws Fault for what JSON
/// can't express.
std::string to_json(const Value& value, const JsonStyle& style);

}  // namespace mlxcel::chat
