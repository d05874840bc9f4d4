#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The only door to the operating system. One file per system implements it.
namespace mlxcel::os {

struct FileInfo {
  uint64_t size;  // bytes
  bool regular;
  bool directory;
  bool symlink;      // of the path itself, when asked without following
  int64_t modified;  // seconds since 1970
};

/// Follows links unless `follow` is false. False if there is nothing there.
bool stat_path(const std::string& path, FileInfo& info, bool follow = true);

/// Names in a directory, sorted bytewise, without "." and "..".
/// Throws Error(io) naming the path.
std::vector<std::string> list_directory(const std::string& path);

/// Opens for reading; refuses anything but a regular file, never blocks on a
/// FIFO. Returns the descriptor and the size. Throws Error.
int open_regular(const std::string& path, uint64_t& size);
/// Reads exactly `count` bytes at `offset`, or throws Error naming `path`.
void read_exact(
    int fd, void* to, size_t count, uint64_t offset, const std::string& path
);
/// Reads all of a stream (a pipe, standard input) up to `limit` bytes.
std::string read_stream(int fd, size_t limit, const std::string& name);
/// Reads what a stream has, at most `count` bytes: 0 at its end. Empty if a
/// signal came first.
std::optional<size_t> read_some(
    int fd, void* to, size_t count, const std::string& name
);
void close_file(int fd);

/// Creates `path` exclusively (never through a link) for writing.
int create_exclusive(const std::string& path);
void write_all(int fd, const void* from, size_t count, const std::string& path);
void sync_file(int fd, const std::string& path);
void rename_file(const std::string& from, const std::string& to);
/// Removes a file or an empty directory; a missing one is no error.
void remove_path(const std::string& path) noexcept;
/// Creates the directory and its parents.
void make_directories(const std::string& path);

/// Maps `size` bytes of a file read-only. Null for size 0.
const std::byte* map_file(int fd, uint64_t size, const std::string& path);
void unmap(const std::byte* data, uint64_t size) noexcept;
/// Reads the range of a mapping in and maps its pages, so that later use does
/// not wait for them. A part that can't be read is a memory fault here.
void will_need(const std::byte* data, uint64_t size) noexcept;
/// Lets go of the pages that lie wholly in the range of a mapping; reading
/// brings them back.
void wont_need(const std::byte* data, uint64_t size) noexcept;
size_t page_size();

/// Zeroed, page-aligned memory that costs nothing until it is touched.
std::byte* reserve_memory(uint64_t size);
void release_memory(std::byte* data, uint64_t size) noexcept;

/// Processors this process may use: affinity, then the cgroup's quota.
int usable_processors();
/// Processors that share no physical core, at most usable_processors().
int usable_cores();
/// Bytes resident now, and at most so far.
uint64_t resident_bytes();
uint64_t peak_resident_bytes();
/// Bytes of memory that can be had without swapping; 0 if unknown.
uint64_t available_memory();
/// Bytes of memory of the machine; 0 if unknown.
uint64_t total_memory();
/// Bytes that this process's control groups (v1 or v2) still grant it, page
/// cache that can be dropped counted as free; empty if none of them limits it.
/// /proc and /sys are looked for below `root`.
std::optional<uint64_t> cgroup_memory_room(const std::string& root = "");

/// Calls `absorb` with the address of a fault in mapped memory (SIGBUS). If it
/// gives false, the handler that was there before gets the fault. Once.
void on_memory_fault(bool (*absorb)(void* address) noexcept);
/// Calls `handler` on an interrupt from the keyboard. `restart`: whether a
/// system call that it meets goes on behind it.
void on_interrupt(void (*handler)(), bool restart);
/// Writing to a reader that is gone, or beyond a file's limit, is an error of
/// the write and no signal.
void ignore_write_signals();
/// Ends the process at once; for signal handlers.
[[noreturn]] void exit_now(int status) noexcept;

bool is_terminal(int fd);
/// Seconds on a monotonic clock.
double now();
/// Seconds since 1970.
int64_t unix_time();
/// Seconds from the start of this process.
double since_process_start();
int process_id();
std::string random_suffix();
/// A variable of the environment; empty string and unset are told apart.
const char* environment(const char* name);
/// 32 bits of randomness from the system.
uint32_t random_seed();
/// One step of a spin-wait loop.
void cpu_relax();

}  // namespace mlxcel::os
