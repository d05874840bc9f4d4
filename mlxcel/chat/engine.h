#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "mlxcel/chat/ast.h"
#include "mlxcel/chat/budget.h"
#include "mlxcel/chat/interpreter.h"

// Parsing and running with errors that say where: what template.h stands on.

namespace mlxcel::chat {

/// Throws TemplateError naming `name`.
std::shared_ptr<const Program> compile(
    std::string_view source, const std::string& name
);

/// Makes the variables of a rendering; called under its Budget.
struct ContextMaker {
  virtual ~ContextMaker() = default;
  /// May throw Fault.
  virtual Context make() const = 0;
};

/// Renders a program. The one place where templates run. `generated` takes
/// what Interpreter::generated() gives. Throws TemplateError naming `name`,
/// Error(out_of_memory).
std::string render(
    const Program& program,
    const std::string& name,
    const ContextMaker& context,
    const TemplateLimits& limits,
    std::optional<int64_t> now,
    std::vector<GeneratedPart>* generated = nullptr
);

}  // namespace mlxcel::chat
