#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "mlxcel/chat/ast.h"

namespace mlxcel::chat {

/// Which of `names` the statements read before they set them, all scopes
/// inside included: how Jinja decides whether a loop needs `loop` and a macro
/// `caller`, `kwargs` or `varargs`.
std::set<std::string> undeclared_names(
    const Body& body, std::set<std::string> names
);

/// Where the loop assigns the variable `name` in its target or body.
std::optional<uint32_t> find_store(For& loop, std::string_view name);

bool has_scoped_block(const Body& body);

/// Whether the template asks if the variable `name` is defined.
bool tests_if_defined(const Program& program, std::string_view name);

}  // namespace mlxcel::chat
