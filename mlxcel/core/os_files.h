#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

/// The part of the door to the operating system (os.h) that those need who
/// keep files open or write them over a long time, beside other processes.
namespace mlxcel::os {

/// Opens a file of one's own for reading and for writing at its end; -1 if
/// there is none, or a link, or one that has other names or another owner.
int open_own_file(const std::string& path, uint64_t& size);
/// Creates one exclusively, for the same use.
int create_own_file(const std::string& path);
/// Cuts the file to `size` bytes.
void truncate_file(int fd, uint64_t size, const std::string& path);
/// Sends bytes that were written on their way to the disk, without waiting.
void start_writeback(int fd, uint64_t offset, uint64_t count);
/// Writes all at a place of the file, which does not move where others write.
void write_at(
    int fd,
    const void* from,
    size_t count,
    uint64_t offset,
    const std::string& path
);
/// Makes the names in a directory last.
void sync_directory(const std::string& path);
/// Bytes that can be written below the path; empty if unknown.
std::optional<uint64_t> free_space(const std::string& path);
/// Seconds since the file was last written; empty if there is none.
std::optional<double> seconds_since_written(const std::string& path);

enum class LockResult { held, busy, unsupported };
/// Opens or creates a file to lock, never through a link.
int open_lock_file(const std::string& path);
/// An exclusive lock against other processes, gone with the descriptor.
LockResult lock_file(int fd, bool wait, const std::string& path);
/// Whether `path` still names the file of the descriptor.
bool is_same_file(int fd, const std::string& path);

/// What tells one state of a file from another.
struct FileState {
  uint64_t device;
  uint64_t inode;
  uint64_t size;     // bytes
  int64_t modified;  // nanoseconds since 1970
};
std::optional<FileState> file_state(int fd);
/// Empty if there is none of that name.
std::optional<FileState> file_state(const std::string& path);

/// Puts zero pages over the pages of [from, to); async-signal-safe.
bool replace_pages(const void* from, const void* to) noexcept;

/// Characters in a line of a terminal; 0 if unknown.
int terminal_columns(int fd);

}  // namespace mlxcel::os
