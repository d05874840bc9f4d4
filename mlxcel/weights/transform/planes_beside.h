#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// The paths of the modules that have a tensor `<path><suffix>`.
std::vector<std::string> modules_with(
    const WeightMap& weights, std::string_view suffix
);

/// `[format] name: why, got [2, 3] U8 (in FILE)`, as Error(invalid_input).
[[noreturn]] void reject_plane(
    const char* format,
    const std::string& name,
    const Weight& weight,
    const std::string& why
);

struct PrefixRename {
  std::string_view from;
  std::string_view to;
};
/// Gives each tensor that begins with some `from`, the first of the list, the
/// name that begins with its `to`. Returns how many.
int64_t rename_prefixes(
    WeightMap& weights, std::span<const PrefixRename> renames
);

}  // namespace mlxcel
