#pragma once

#include <functional>
#include <string>

namespace mlxcel::hub {

/// Keeps other processes from downloading into a directory while it lives.
class DirectoryLock {
 public:
  /// Calls `note` if it has to wait for another process, or if the file
  /// system knows no locks. Throws Error(io).
  DirectoryLock(
      const std::string& directory,
      const std::function<void(const std::string&)>& note
  );
  ~DirectoryLock();
  /// Whether another process downloads into the directory now.
  static bool is_held(const std::string& directory);

  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace mlxcel::hub
