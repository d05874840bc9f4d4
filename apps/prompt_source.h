#pragma once

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace mlxcel::apps {

/// Where a prompt comes from: an argument, a file, or a pipe.
struct PromptSource {
  std::optional<std::string> text;
  std::string file;
  std::string system;

  void add_to(CLI::App& command);
  /// The prompt; empty if there is none and standard input is a terminal.
  /// Throws Error naming what can't be read or is no UTF-8 text.
  std::optional<std::string> read(bool from_pipe) const;
};

/// The text, unless it is empty, no UTF-8 or has NUL bytes, as what isn't text
/// has: then throws Error(invalid_input) naming where it came from.
std::string checked_text(std::string text, const std::string& name);

}  // namespace mlxcel::apps
