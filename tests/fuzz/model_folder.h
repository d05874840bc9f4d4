#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "mlxcel/core/os.h"

namespace mlxcel::fuzz {

/// A folder in memory for one process, with one file that changes.
class ModelFolder {
 public:
  explicit ModelFolder(const std::string& file)
      : path_("/dev/shm/mlxcel_fuzz." + os::random_suffix()),
        file_(path_ + "/" + file) {
    std::filesystem::create_directory(path_);
  }
  ~ModelFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

  const std::string& path() const {
    return path_;
  }
  void write(std::string_view bytes) const {
    std::ofstream(file_, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  void write_beside(const std::string& name, std::string_view text) const {
    std::ofstream(path_ + "/" + name) << text;
  }
  void link_beside(const std::string& name, const std::string& target) const {
    std::filesystem::create_symlink(target, path_ + "/" + name);
  }

 private:
  std::string path_;
  std::string file_;
};

}  // namespace mlxcel::fuzz
