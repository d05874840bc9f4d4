#include "mlxcel/chat/arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/chat/fault.h"

namespace mlxcel::chat {

const Value* Arguments::find(std::string_view name) const {
  for (const auto& [own, value] : named) {
    if (own == name) {
      return &value;
    }
  }
  return nullptr;
}

Value Arguments::take(std::string_view name) {
  for (auto it = named.begin(); it != named.end(); ++it) {
    if (it->first == name) {
      Value value = std::move(it->second);
      named.erase(it);
      return value;
    }
  }
  return Value();
}

Parameters::Parameters(
    std::string_view function,
    const Arguments& arguments,
    std::initializer_list<std::string_view> names,
    size_t required
)
    : function_(function), names_(names), values_(names.size()) {
  if (arguments.positional.size() > names_.size()) {
    fault(fmt::format(
        "{}: at most {} arguments, got {}",
        function,
        names_.size(),
        arguments.positional.size()
    ));
  }
  std::copy(
      arguments.positional.begin(), arguments.positional.end(), values_.begin()
  );
  for (const auto& [name, value] : arguments.named) {
    auto found = std::find(names_.begin(), names_.end(), name);
    if (name.empty() || found == names_.end()) {
      fault(fmt::format("{}: unknown argument '{}'", function, name));
    }
    Value& slot = values_[static_cast<size_t>(found - names_.begin())];
    if (!slot.is(Kind::missing)) {
      fault(fmt::format("{}: argument '{}' is given twice", function, name));
    }
    slot = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!has(i)) {
      fault(fmt::format("{}: argument {} is missing", function, label(i)));
    }
  }
}

std::string Parameters::label(size_t index) const {
  return names_[index].empty() ? std::to_string(index + 1)
                               : fmt::format("'{}'", names_[index]);
}

void Parameters::reject(size_t index, std::string_view expected) const {
  const Value& value = values_[index];
  if (value.is(Kind::undefined)) {
    fault(value.absence());
  }
  fault(fmt::format(
      "{}: argument {} must be {}, got {}",
      function_,
      label(index),
      expected,
      type_name(value)
  ));
}

int64_t Parameters::integer(size_t index, int64_t fallback) const {
  if (!has(index)) {
    return fallback;
  }
  if (!values_[index].is_integral()) {
    reject(index, "an integer");
  }
  return values_[index].integer();
}

bool Parameters::truth(size_t index, bool fallback) const {
  return has(index) ? chat::truth(values_[index]) : fallback;
}

std::string_view Parameters::text(size_t index) const {
  if (!values_[index].is_string()) {
    reject(index, "a string");
  }
  return values_[index].view();
}

std::string_view Parameters::text(size_t index, std::string_view fallback)
    const {
  return has(index) ? text(index) : fallback;
}

}  // namespace mlxcel::chat
