#pragma once

#include <map>
#include <string_view>

#include "mlxcel/chat/filters.h"

// The built-in filters by theme; filters.cpp puts them together.

namespace mlxcel::chat {

using FilterTable = std::map<std::string_view, FilterInfo>;

void add_text_filters(FilterTable& table);
void add_list_filters(FilterTable& table);
void add_select_filters(FilterTable& table);
void add_number_filters(FilterTable& table);

/// The input as a string, as it is if it is one already.
Value as_text(const Value& value);

/// Looks up `a.b.0` in items, as the `attribute` argument of filters does.
class AttributePath {
 public:
  /// Of a string, an integer, or none for the item itself.
  explicit AttributePath(const Value& attribute);

  /// `fallback`, unless missing, stands for parts that are undefined.
  Value get(
      Interpreter& interpreter, Value item, const Value& fallback = Value()
  ) const;

 private:
  std::vector<Value> parts_;
};

}  // namespace mlxcel::chat
