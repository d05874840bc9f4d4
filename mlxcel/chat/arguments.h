#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mlxcel/chat/value.h"

namespace mlxcel::chat {

/// The evaluated arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  bool empty() const {
    return positional.empty() && named.empty();
  }
  /// The named argument, or null.
  const Value* find(std::string_view name) const;
  /// Removes the named argument and returns it; a missing value if absent.
  Value take(std::string_view name);
};

/// Distributes arguments over the parameters of a function as Python does.
class Parameters {
 public:
  /// An empty name stands for a parameter that has no name to be given by.
  /// The first `required` must be given. Throws Fault naming the function for
  /// one that is missing, unknown, given twice or too many.
  Parameters(
      std::string_view function,
      const Arguments& arguments,
      std::initializer_list<std::string_view> names,
      size_t required = 0
  );
  /// The same for a function without parameters.
  static void none(std::string_view function, const Arguments& arguments) {
    Parameters parameters(function, arguments, {});
  }

  /// Given, `none` included.
  bool has(size_t index) const {
    return !values_[index].is(Kind::missing);
  }
  /// Given and not `none`.
  bool has_value(size_t index) const {
    return has(index) && !values_[index].is(Kind::none);
  }
  const Value& operator[](size_t index) const {
    return values_[index];
  }
  /// Typed access; each throws Fault naming function and parameter.
  int64_t integer(size_t index, int64_t fallback) const;
  bool truth(size_t index, bool fallback) const;
  std::string_view text(size_t index) const;
  std::string_view text(size_t index, std::string_view fallback) const;

 private:
  [[noreturn]] void reject(size_t index, std::string_view expected) const;
  std::string label(size_t index) const;

  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<Value> values_;
};

}  // namespace mlxcel::chat
