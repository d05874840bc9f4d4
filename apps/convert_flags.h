#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mlxcel::apps {

/// Flags of `convert` for a checkpoint directory.
struct CheckpointFlags {
  bool quantize = false;
  bool dequantize = false;
  std::optional<int> bits;
  std::optional<int> group;
  std::optional<std::string> mode;
  std::optional<std::string> preset;
  std::vector<std::string> layers;
  std::optional<std::string> recipe;
  std::optional<std::string> dtype;
  std::optional<std::string> report;

  void add_to(CLI::App& command);
  /// One of them that is given, "" if none is.
  std::string given() const;
};

/// Throws what convert_checkpoint() throws, and Error(usage) for flags that
/// contradict each other.
void convert_directory(
    const std::string& input,
    const std::string& output,
    const CheckpointFlags& flags,
    bool force
);

}  // namespace mlxcel::apps
