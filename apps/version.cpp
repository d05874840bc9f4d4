#include <fmt/format.h>

#include "apps/command.h"
#include "mlxcel/backend/factory.h"
#include "mlxcel_version.h"

namespace mlxcel::apps {

std::string version_text() {
  std::string text =
      fmt::format("mlxcel {} ({})", MLXCEL_VERSION, MLXCEL_COMMIT);
  for (const backend::BackendFactory& factory : backend::built_backends()) {
    text += fmt::format("\n{}: {}", factory.name, factory.describe());
  }
  return text;
}

}  // namespace mlxcel::apps
