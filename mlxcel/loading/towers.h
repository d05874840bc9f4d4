#pragma once

#include <string>

#include "mlxcel/core/json.h"
#include "mlxcel/loading/registry.h"

namespace mlxcel {

/// Whether a vision checkpoint comes with its tower, and if not, why.
struct TowerAnswer {
  bool present = true;
  std::string reason;  // "" if present
};

/// Text or vision, for a row that takes images: absent, null or empty
/// `vision_config`, `language_model_only: true` or weights without a tensor of
/// the tower mean text. Without weights the config's answer stands, but for
/// Tower::proven, which is text then. detection-and-routing.md 0 and 3.2.
/// Throws Error(unsupported) where a family that can't go without its tower is
/// asked to, and what reading an index or a header throws.
TowerAnswer find_tower(
    const std::string& directory, const Json& config, const Descriptor& row
);

}  // namespace mlxcel
