#pragma once

#include <string>

namespace mlxcel::hub {

/// No file that a model is read from may lie elsewhere: throws
/// Error(invalid_input) naming a link of the directory, or of a folder in it,
/// that leads out (core/containment.h) and whose name is one that readers
/// look for. Links to nothing are left to them.
void check_links(const std::string& directory);

}  // namespace mlxcel::hub
