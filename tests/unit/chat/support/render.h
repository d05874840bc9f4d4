#pragma once

#include <string>

#include "mlxcel/chat/engine.h"
#include "mlxcel/chat/template_error.h"

namespace mlxcel::test {

/// Renders a template with the variables of a JSON object.
std::string render(
    const std::string& source,
    const std::string& context = "{}",
    const TemplateLimits& limits = {}
);

/// The error that rendering ends with; fails the test if there is none.
TemplateError render_error(
    const std::string& source,
    const std::string& context = "{}",
    const TemplateLimits& limits = {}
);

}  // namespace mlxcel::test
