#include "mlxcel/weights/transform/planes_beside.h"

#include <fmt/format.h>

#include "mlxcel/core/error.h"

namespace mlxcel {

std::vector<std::string> modules_with(
    const WeightMap& weights, std::string_view suffix
) {
  std::vector<std::string> paths;
  for (const auto& [name, weight] : weights) {
    if (name.ends_with(suffix)) {
      paths.push_back(name.substr(0, name.size() - suffix.size()));
    }
  }
  return paths;
}

void reject_plane(
    const char* format,
    const std::string& name,
    const Weight& weight,
    const std::string& why
) {
  fail(
      ErrorCode::invalid_input,
      fmt::format(
          "[{}] {}: {}, got {} (in {})",
          format,
          name,
          why,
          weight.describe(),
          weight.source->origin()
      )
  );
}

int64_t rename_prefixes(
    WeightMap& weights, std::span<const PrefixRename> renames
) {
  std::vector<std::pair<std::string, std::string>> changes;
  for (const auto& [name, weight] : weights) {
    for (const PrefixRename& rename : renames) {
      if (name.starts_with(rename.from)) {
        std::string to(rename.to);
        to += name.substr(rename.from.size());
        changes.emplace_back(name, std::move(to));
        break;
      }
    }
  }
  for (const auto& [from, to] : changes) {
    weights.rename(from, to);
  }
  return static_cast<int64_t>(changes.size());
}

}  // namespace mlxcel
