#pragma once

#include "mlxcel/chat/ast.h"

namespace mlxcel::chat {

/// Gives every variable of a parsed template its slot, by Jinja's rules: loops,
/// macros, `call`, `filter`, `set` and `with` blocks have variables of their
/// own, `if` has not; a name that a scope sets hides an outer one for the whole
/// scope, starting from its value; others are looked up when the scope is
/// entered. Checks what is known only then: filters and tests that don't
/// exist, `break` outside of a loop. Throws SyntaxFault.
void resolve_scopes(Program& program);

}  // namespace mlxcel::chat
