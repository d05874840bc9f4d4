#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace mlxcel::apps {

/// Text for commands that take it byte for byte: an argument, a file, or
/// standard input (`-`, or no argument and no file).
struct TextInput {
  std::optional<std::string> argument;
  std::string file;

  /// `word` names the argument in the help.
  void add_to(CLI::App& command, const std::string& word);
  /// Throws Error(usage) where standard input is a terminal and wasn't asked
  /// for, Error(io | invalid_input) naming what can't be read or is too long.
  std::string read() const;
  /// What messages call it.
  std::string name() const;
  /// The lines of the file or of standard input, without their newlines, with
  /// their numbers from 1. Throws Error(usage) if there is an argument.
  void each_line(const std::function<void(std::string_view, size_t)>& use
  ) const;
};

}  // namespace mlxcel::apps
