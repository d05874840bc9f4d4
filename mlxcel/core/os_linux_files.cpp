#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "mlxcel/core/error.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/os_files.h"

namespace mlxcel::os {

namespace {

[[noreturn]] void fail_errno(const char* what, const std::string& path) {
  int error = errno;
  fail(
      ErrorCode::io,
      fmt::format("[file] cannot {} {}: {}", what, path, std::strerror(error))
  );
}

}  // namespace

int open_own_file(const std::string& path, uint64_t& size) {
  int fd = ::open(
      path.c_str(), O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
  );
  if (fd < 0) {
    return -1;
  }
  struct stat st;
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1 ||
      st.st_uid != ::geteuid()) {
    ::close(fd);
    return -1;
  }
  size = static_cast<uint64_t>(st.st_size);
  return fd;
}

int create_own_file(const std::string& path) {
  int fd = ::open(
      path.c_str(),
      O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
      0644
  );
  if (fd < 0) {
    fail_errno("create", path);
  }
  return fd;
}

void truncate_file(int fd, uint64_t size, const std::string& path) {
  while (::ftruncate(fd, static_cast<off_t>(size)) != 0) {
    if (errno != EINTR) {
      fail_errno("cut", path);
    }
  }
}

void start_writeback(int fd, uint64_t offset, uint64_t count) {
  // Only a hint: what can't be done early is done by fsync.
  (void)::sync_file_range(
      fd,
      static_cast<off64_t>(offset),
      static_cast<off64_t>(count),
      SYNC_FILE_RANGE_WRITE
  );
}

void write_at(
    int fd,
    const void* from,
    size_t count,
    uint64_t offset,
    const std::string& path
) {
  const char* at = static_cast<const char*>(from);
  while (count > 0) {
    ssize_t put = ::pwrite(fd, at, count, static_cast<off_t>(offset));
    if (put < 0) {
      if (errno == EINTR) {
        continue;
      }
      fail_errno("write", path);
    }
    at += put;
    offset += static_cast<uint64_t>(put);
    count -= static_cast<size_t>(put);
  }
}

void sync_directory(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    fail_errno("open", path);
  }
  // Some network file systems can't; the rename is theirs to keep then.
  ::fsync(fd);
  ::close(fd);
}

std::optional<uint64_t> free_space(const std::string& path) {
  struct statvfs st;
  if (::statvfs(path.c_str(), &st) != 0 || st.f_blocks == 0) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(st.f_bavail) * st.f_frsize;
}

std::optional<double> seconds_since_written(const std::string& path) {
  struct stat st;
  if (::lstat(path.c_str(), &st) != 0) {
    return std::nullopt;
  }
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec - st.st_mtim.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec - st.st_mtim.tv_nsec);
}

int open_lock_file(const std::string& path) {
  int fd = ::open(
      path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644
  );
  if (fd < 0) {
    fail_errno("create", path);
  }
  return fd;
}

LockResult lock_file(int fd, bool wait, const std::string& path) {
  while (::flock(fd, wait ? LOCK_EX : LOCK_EX | LOCK_NB) != 0) {
    switch (errno) {
      case EINTR:
        continue;
      case EWOULDBLOCK:
        return LockResult::busy;
      case ENOSYS:
      case ENOLCK:
      case EOPNOTSUPP:
        return LockResult::unsupported;
      default:
        fail_errno("lock", path);
    }
  }
  return LockResult::held;
}

bool is_same_file(int fd, const std::string& path) {
  struct stat opened;
  struct stat named;
  return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

namespace {

FileState state_of(const struct stat& st) {
  return {
      static_cast<uint64_t>(st.st_dev),
      static_cast<uint64_t>(st.st_ino),
      static_cast<uint64_t>(st.st_size),
      int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec,
  };
}

}  // namespace

std::optional<FileState> file_state(int fd) {
  struct stat st;
  return ::fstat(fd, &st) == 0 ? std::optional(state_of(st)) : std::nullopt;
}

std::optional<FileState> file_state(const std::string& path) {
  struct stat st;
  return ::stat(path.c_str(), &st) == 0 ? std::optional(state_of(st))
                                        : std::nullopt;
}

bool replace_pages(const void* from, const void* to) noexcept {
  size_t into_page = reinterpret_cast<uintptr_t>(from) & (page_size() - 1);
  auto* first = static_cast<char*>(const_cast<void*>(from)) - into_page;
  auto* last = static_cast<const char*>(to);
  return ::mmap(
             first,
             static_cast<size_t>(last - first),
             PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
             -1,
             0
         ) != MAP_FAILED;
}

int terminal_columns(int fd) {
  winsize size;
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace mlxcel::os
