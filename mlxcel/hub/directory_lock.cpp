#include "mlxcel/hub/directory_lock.h"

#include "mlxcel/core/file.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/os_files.h"

namespace mlxcel::hub {

namespace {

constexpr const char* kLockName = ".mlxcel-download.lock";

}  // namespace

// The holder removes the file when it is done. One that waited then holds a
// lock on a file without a name, and begins again.
DirectoryLock::DirectoryLock(
    const std::string& directory,
    const std::function<void(const std::string&)>& note
)
    : path_(join_path(directory, kLockName)) {
  bool told = false;
  while (true) {
    fd_ = os::open_lock_file(path_);
    os::LockResult result = os::lock_file(fd_, told, path_);
    if (result == os::LockResult::unsupported) {
      note(
          directory +
          ": this file system has no locks; do not download into "
          "it twice at the same time"
      );
      return;
    }
    if (result == os::LockResult::held && os::is_same_file(fd_, path_)) {
      return;
    }
    os::close_file(fd_);
    if (result == os::LockResult::busy) {
      told = true;
      note("another process downloads into " + directory + "; waiting for it");
    }
  }
}

bool DirectoryLock::is_held(const std::string& directory) {
  std::string path = join_path(directory, kLockName);
  if (!path_exists(path)) {
    return false;
  }
  int fd = os::open_lock_file(path);
  bool busy = os::lock_file(fd, false, path) == os::LockResult::busy;
  os::close_file(fd);
  return busy;
}

DirectoryLock::~DirectoryLock() {
  os::remove_path(path_);
  os::close_file(fd_);
}

}  // namespace mlxcel::hub
