#pragma once

#include <optional>
#include <string>

namespace mlxcel::hub {

/// A variable of the environment; empty if it is unset or blank.
std::string variable(const char* name);

/// A folder from a variable, `~` at its front replaced by HOME; nothing if the
/// variable is unset or blank.
std::optional<std::string> folder_variable(const char* name);

/// HOME; nothing if it is unset.
std::optional<std::string> home_folder();

/// `~/x` for a path below HOME, any other as it is.
std::string contract_home(const std::string& path);

}  // namespace mlxcel::hub
