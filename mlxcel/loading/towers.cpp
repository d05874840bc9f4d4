#include "mlxcel/loading/towers.h"

#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/loading/signals.h"
#include "mlxcel/weights/shards.h"

namespace mlxcel {

namespace {

constexpr const char* kTextOnly = "language_model_only";

bool declares_vision(const Json& config) {
  auto vision = config.find("vision_config");
  return vision && !(vision->is_object() && vision->size() == 0);
}

// Sorted names, so that each prefix is one search.
bool any_starts_with(
    const std::vector<std::string>& names, std::string_view prefixes
) {
  while (!prefixes.empty()) {
    size_t end = std::min(prefixes.find(' '), prefixes.size());
    std::string_view prefix = prefixes.substr(0, end);
    auto at = std::lower_bound(names.begin(), names.end(), prefix);
    if (at != names.end() && at->starts_with(prefix)) {
      return true;
    }
    prefixes.remove_prefix(std::min(end + 1, prefixes.size()));
  }
  return false;
}

}  // namespace

TowerAnswer find_tower(
    const std::string& directory, const Json& config, const Descriptor& row
) {
  bool text_only = is_flag(config, kTextOnly, true);
  if (row.tower == Tower::fixed) {
    if (text_only) {
      config.at(kTextOnly).reject(fmt::format(
          "{} has no text model of its own and can't be loaded as text "
          "only",
          row.display_name
      ));
    }
    return {};
  }
  if (text_only) {
    return {false, "language_model_only is true"};
  }
  if (row.tower != Tower::undeclared && !declares_vision(config)) {
    return {false, "vision_config is absent, null or empty"};
  }
  auto names = directory.empty() ? std::nullopt : tensor_names(directory);
  if (!names) {
    return row.tower == Tower::proven
               ? TowerAnswer{false, "there are no weights that show a tower"}
               : TowerAnswer{};
  }
  if (any_starts_with(*names, row.towers)) {
    return {};
  }
  return {false, fmt::format("the weights have no tensor of {}", row.towers)};
}

}  // namespace mlxcel
