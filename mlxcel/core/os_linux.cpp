#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/os.h"

namespace mlxcel::os {

namespace {

[[noreturn]] void fail_errno(const char* what, const std::string& path) {
  int error = errno;
  ErrorCode code = error == ENOENT   ? ErrorCode::not_found
                   : error == ENOMEM ? ErrorCode::out_of_memory
                                     : ErrorCode::io;
  fail(
      code,
      fmt::format("[file] cannot {} {}: {}", what, path, std::strerror(error))
  );
}

std::string slurp(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

uint64_t status_kib(const char* file, const char* key) {
  std::ifstream in(file);
  std::string line;
  size_t length = std::strlen(key);
  while (std::getline(in, line)) {
    if (line.compare(0, length, key) == 0) {
      return std::strtoull(line.c_str() + length, nullptr, 10);
    }
  }
  return 0;
}

// Processors granted by the cgroup's quota, 0 if there is none.
int cgroup_processors() {
  std::string text = slurp("/sys/fs/cgroup/cpu.max");
  double quota = 0;
  double period = 0;
  if (std::sscanf(text.c_str(), "%lf %lf", &quota, &period) == 2 && quota > 0 &&
      period > 0) {
    return std::max(1, static_cast<int>(std::lround(quota / period)));
  }
  return 0;
}

// Reads a byte of each page, so that a page that can't be had is a SIGBUS here.
void touch_pages(const std::byte* data, uint64_t size) noexcept {
  for (uint64_t at = 0; at < size; at += page_size()) {
    (void)*static_cast<const volatile std::byte*>(data + at);
  }
  if (size > 0) {
    (void)*static_cast<const volatile std::byte*>(data + size - 1);
  }
}

}  // namespace

bool stat_path(const std::string& path, FileInfo& info, bool follow) {
  struct stat st;
  int result = follow ? ::stat(path.c_str(), &st) : ::lstat(path.c_str(), &st);
  if (result != 0) {
    return false;
  }
  info.size = static_cast<uint64_t>(st.st_size);
  info.regular = S_ISREG(st.st_mode);
  info.directory = S_ISDIR(st.st_mode);
  info.symlink = S_ISLNK(st.st_mode);
  info.modified = static_cast<int64_t>(st.st_mtime);
  return true;
}

namespace {

// Also if there is no memory for a name.
struct CloseDirectory {
  void operator()(DIR* dir) const {
    ::closedir(dir);
  }
};

}  // namespace

std::vector<std::string> list_directory(const std::string& path) {
  std::unique_ptr<DIR, CloseDirectory> dir(::opendir(path.c_str()));
  if (dir == nullptr) {
    fail_errno("list", path);
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(dir.get())) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") {
      names.push_back(std::move(name));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

int open_regular(const std::string& path, uint64_t& size) {
  if (path.find('\0') != std::string::npos) {
    fail(
        ErrorCode::invalid_input,
        fmt::format("[file] {}: a path with a NUL byte", quote(path))
    );
  }
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    fail_errno("open", path);
  }
  struct stat st;
  if (::fstat(fd, &st) != 0) {
    ::close(fd);
    fail_errno("inspect", path);
  }
  if (!S_ISREG(st.st_mode)) {
    ::close(fd);
    fail(
        ErrorCode::invalid_input,
        fmt::format("[file] {} is not a regular file", path)
    );
  }
  size = static_cast<uint64_t>(st.st_size);
  return fd;
}

void read_exact(
    int fd, void* to, size_t count, uint64_t offset, const std::string& path
) {
  char* at = static_cast<char*>(to);
  while (count > 0) {
    ssize_t got = ::pread(fd, at, count, static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) {
        continue;
      }
      fail_errno("read", path);
    }
    if (got == 0) {
      fail(
          ErrorCode::io, fmt::format("[file] {} ended while it was read", path)
      );
    }
    at += got;
    offset += static_cast<uint64_t>(got);
    count -= static_cast<size_t>(got);
  }
}

std::string read_stream(int fd, size_t limit, const std::string& name) {
  std::string text;
  char buffer[65536];
  while (true) {
    ssize_t got = ::read(fd, buffer, sizeof(buffer));
    if (got < 0) {
      if (errno == EINTR) {
        continue;
      }
      fail_errno("read", name);
    }
    if (got == 0) {
      return text;
    }
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > limit) {
      fail(
          ErrorCode::invalid_input,
          fmt::format("[file] {}: more than {} bytes", name, limit)
      );
    }
  }
}

std::optional<size_t> read_some(
    int fd, void* to, size_t count, const std::string& name
) {
  ssize_t got = ::read(fd, to, count);
  if (got < 0 && errno == EINTR) {
    return std::nullopt;
  }
  if (got < 0) {
    fail_errno("read", name);
  }
  return static_cast<size_t>(got);
}

void close_file(int fd) {
  ::close(fd);
}

int create_exclusive(const std::string& path) {
  int fd = ::open(
      path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644
  );
  if (fd < 0) {
    fail_errno("create", path);
  }
  return fd;
}

void write_all(
    int fd, const void* from, size_t count, const std::string& path
) {
  const char* at = static_cast<const char*>(from);
  bool touched = false;
  while (count > 0) {
    ssize_t put = ::write(fd, at, count);
    if (put < 0) {
      if (errno == EINTR) {
        continue;
      }
      // Bytes of a mapped file that was cut: a fault, like reading them.
      if (errno == EFAULT && !touched) {
        touch_pages(reinterpret_cast<const std::byte*>(at), count);
        touched = true;
        continue;
      }
      fail_errno("write", path);
    }
    at += put;
    count -= static_cast<size_t>(put);
  }
}

void sync_file(int fd, const std::string& path) {
  if (::fsync(fd) != 0 && errno != EINVAL) {
    fail_errno("write", path);
  }
}

void rename_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    fail_errno("rename to", to);
  }
}

void remove_path(const std::string& path) noexcept {
  if (::unlink(path.c_str()) != 0) {
    ::rmdir(path.c_str());
  }
}

void make_directories(const std::string& path) {
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at == path.size() || path[at] == '/') {
      std::string part = path.substr(0, at);
      if (::mkdir(part.c_str(), 0755) != 0 && errno != EEXIST) {
        fail_errno("create directory", part);
      }
    }
  }
  FileInfo info;
  if (!stat_path(path, info) || !info.directory) {
    fail(ErrorCode::io, fmt::format("[file] {} is not a directory", path));
  }
}

const std::byte* map_file(int fd, uint64_t size, const std::string& path) {
  if (size == 0) {
    return nullptr;
  }
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) {
    fail_errno("map", path);
  }
  return static_cast<const std::byte*>(data);
}

void unmap(const std::byte* data, uint64_t size) noexcept {
  if (data != nullptr) {
    ::munmap(const_cast<std::byte*>(data), size);
  }
}

void will_need(const std::byte* data, uint64_t size) noexcept {
  constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, Linux 5.14
  size_t into_page = reinterpret_cast<uintptr_t>(data) & (page_size() - 1);
  auto* from = const_cast<std::byte*>(data) - into_page;
  uint64_t length = size + into_page;
  if (::madvise(from, length, kPopulateRead) == 0) {
    return;
  }
  if (errno == EFAULT || errno == EHWPOISON) {
    touch_pages(data, size);
  } else {
    ::madvise(from, length, MADV_WILLNEED);
  }
}

void wont_need(const std::byte* data, uint64_t size) noexcept {
  auto address = reinterpret_cast<uintptr_t>(data);
  size_t before = (page_size() - (address & (page_size() - 1))) % page_size();
  if (size < before + page_size()) {
    return;
  }
  uint64_t length = (size - before) / page_size() * page_size();
  ::madvise(const_cast<std::byte*>(data) + before, length, MADV_DONTNEED);
}

size_t page_size() {
  static const size_t size = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

std::byte* reserve_memory(uint64_t size) {
  void* data = ::mmap(
      nullptr,
      size,
      PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
      -1,
      0
  );
  if (data == MAP_FAILED) {
    fail(
        ErrorCode::out_of_memory,
        fmt::format("[memory] cannot reserve {} bytes", size)
    );
  }
  ::madvise(data, size, MADV_HUGEPAGE);
  return static_cast<std::byte*>(data);
}

void release_memory(std::byte* data, uint64_t size) noexcept {
  if (data != nullptr) {
    ::munmap(data, size);
  }
}

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = 1;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
    count = std::max(1, CPU_COUNT(&set));
  }
  int quota = cgroup_processors();
  return quota > 0 ? std::min(count, quota) : count;
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) {
    return 1;
  }
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) {
      std::string siblings = slurp(fmt::format(
          "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu
      ));
      cores.insert(siblings.empty() ? std::to_string(cpu) : siblings);
    }
  }
  return std::clamp(static_cast<int>(cores.size()), 1, usable_processors());
}

uint64_t resident_bytes() {
  return status_kib("/proc/self/status", "VmRSS:") * 1024;
}

uint64_t peak_resident_bytes() {
  return status_kib("/proc/self/status", "VmHWM:") * 1024;
}

uint64_t available_memory() {
  return status_kib("/proc/meminfo", "MemAvailable:") * 1024;
}

uint64_t total_memory() {
  return status_kib("/proc/meminfo", "MemTotal:") * 1024;
}

bool is_terminal(int fd) {
  return ::isatty(fd) == 1;
}

double now() {
  timespec ts;
  ::clock_gettime(CLOCK_MONOTONIC, &ts);
  return static_cast<double>(ts.tv_sec) +
         1e-9 * static_cast<double>(ts.tv_nsec);
}

int64_t unix_time() {
  timespec ts;
  ::clock_gettime(CLOCK_REALTIME, &ts);
  return static_cast<int64_t>(ts.tv_sec);
}

double since_process_start() {
  // Field 22 of /proc/self/stat: start time in clock ticks after boot.
  std::string text = slurp("/proc/self/stat");
  size_t at = text.rfind(')');
  if (at == std::string::npos) {
    return 0;
  }
  at += 1;
  for (int field = 2; field < 21 && at != std::string::npos; ++field) {
    at = text.find(' ', at + 1);
  }
  if (at == std::string::npos) {
    return 0;
  }
  double ticks = std::strtod(text.c_str() + at, nullptr);
  timespec ts;
  ::clock_gettime(CLOCK_BOOTTIME, &ts);
  double boot =
      static_cast<double>(ts.tv_sec) + 1e-9 * static_cast<double>(ts.tv_nsec);
  return boot - ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

int process_id() {
  return static_cast<int>(::getpid());
}

std::string random_suffix() {
  return fmt::format("{:08x}", random_seed());
}

const char* environment(const char* name) {
  return ::secure_getenv(name);
}

uint32_t random_seed() {
  uint32_t seed = 0;
  if (::getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) {
    timespec ts;
    ::clock_gettime(CLOCK_REALTIME, &ts);
    seed = static_cast<uint32_t>(ts.tv_nsec) ^
           (static_cast<uint32_t>(::getpid()) << 16);
  }
  return seed;
}

void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace mlxcel::os
