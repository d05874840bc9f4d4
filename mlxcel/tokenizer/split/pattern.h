#pragma once

#include <memory>
#include <string>

#include "mlxcel/core/json.h"
#include "mlxcel/tokenizer/regex/regex.h"

namespace mlxcel::tokenizer {

/// {"Regex": "..."} or {"String": "..."}. Throws Error(invalid_input |
/// unsupported) naming the field.
std::shared_ptr<const Regex> make_pattern(const Json& json);

/// Throws Error(unsupported) naming the file, the field and the type.
[[noreturn]] void unsupported_type(
    const Json& json, const char* what, const std::string& type
);

}  // namespace mlxcel::tokenizer
