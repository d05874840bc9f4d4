#pragma once

#include <string>

namespace CLI {
class App;
}

namespace mlxcel::apps {

/// `-m MODEL` for commands that read a few of the model's files.
void add_model_directory(CLI::App& command, std::string& model);

/// A model given as a directory or a file inside one. Throws
/// Error(not_found) if it is neither.
std::string model_directory(const std::string& model);

}  // namespace mlxcel::apps
