#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "mlxcel/core/os_files.h"

namespace mlxcel {

/// The whole of a regular file, at most `limit` bytes.
/// Throws Error naming the path.
std::string read_file(const std::string& path, uint64_t limit);

/// A regular file, also by way of a link.
bool file_exists(const std::string& path);
/// Anything of that name, also a link to nothing: what is there but can't be
/// read is an error where what is absent is none.
bool path_exists(const std::string& path);
bool directory_exists(const std::string& path);
std::string join_path(const std::string& directory, const std::string& name);
/// "a/b/c" -> "a/b"; "c" -> ".".
std::string parent_path(const std::string& path);
/// "a/b/c/" -> "c".
std::string base_name(const std::string& path);

/// A read-only view of a file. A fault in it (the file shrank, the disk
/// failed) does not end the process once the guard is installed
/// (core/fault_guard.h): faulted() turns true, and from that page on the view
/// reads as zero.
class MappedFile {
 public:
  /// Throws Error naming the path; refuses anything but a regular file.
  static std::shared_ptr<MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const {
    return path_;
  }
  std::span<const std::byte> bytes() const {
    return {data_, size_};
  }
  bool faulted() const {
    return faulted_.load(std::memory_order_acquire);
  }
  /// Whether the file was written to or cut after it was opened. One that is
  /// gone, or whose name another file took, was not: the view keeps it.
  bool changed() const;

 private:
  friend struct FaultGuard;
  MappedFile() = default;

  std::string path_;
  const std::byte* data_ = nullptr;
  uint64_t size_ = 0;
  std::optional<os::FileState> opened_;
  std::atomic<bool> faulted_ = false;
};

/// Writes beside `path` under a temporary name; commit() renames. Without
/// commit() nothing is left behind.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t count);
  void write(const std::string& text);
  uint64_t written() const {
    return written_;
  }
  /// Writes at a place behind what write() wrote; from any thread, between
  /// the last write() and commit().
  void write_at(uint64_t offset, const void* data, size_t count);
  /// What write() was given goes to the file, for write_at() to come after it.
  void flush();
  /// Flushes to the disk and takes the final name. Throws Error(io).
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  std::string buffer_;
  uint64_t written_ = 0;
  int fd_ = -1;
};

}  // namespace mlxcel
