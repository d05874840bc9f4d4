#pragma once

#include <string>
#include <vector>

namespace mlxcel::convert {

/// A directory of files that appears whole or not at all: they are written to
/// staging() and moved by publish(). Without publish() nothing is left behind.
class OutputDirectory {
 public:
  /// Throws Error(usage) if `path` is a directory that holds files and `force`
  /// is off, or no directory.
  OutputDirectory(const std::string& path, bool force);
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

  const std::string& staging() const {
    return staging_;
  }
  /// A directory that was there keeps its other files, except SafeTensors
  /// files and their index, which would be loaded with the new ones.
  void publish();

 private:
  void replace_files();
  void remove_parents() noexcept;

  std::string path_;
  std::string staging_;
  bool existed_ = false;
  std::vector<std::string> made_parents_;  // innermost first
};

}  // namespace mlxcel::convert
