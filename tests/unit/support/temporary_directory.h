#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "mlxcel/core/os.h"

namespace mlxcel {

/// A fresh directory that goes with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory()
      : path_(
            std::filesystem::temp_directory_path() /
            ("mlxcel-test-" + os::random_suffix())
        ) {
    std::filesystem::create_directory(path_);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string path() const {
    return path_.string();
  }
  std::string operator/(const std::string& name) const {
    return (path_ / name).string();
  }
  /// Writes a file and gives its path.
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

}  // namespace mlxcel
