#pragma once

#include <string>
#include <vector>

namespace mlxcel {

/// Finds stop strings in a stream of text. Text from the earliest match on is
/// never emitted; a suffix that could still become a match is held back.
class StopStrings {
 public:
  /// Throws Error(usage) for an empty string or too many of them.
  explicit StopStrings(std::vector<std::string> stops);

  /// Adds text and returns what may be emitted now.
  std::string push(const std::string& text);
  /// What was held back, at a natural end.
  std::string flush();
  /// True once a stop string was found.
  bool stopped() const {
    return stopped_;
  }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace mlxcel
