#include "mlxcel/core/file.h"

#include <fmt/format.h>

#include "mlxcel/core/error.h"
#include "mlxcel/core/fault_guard.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/os_files.h"

namespace mlxcel {

namespace {

constexpr size_t kWriteBuffer = 1 << 20;

struct Descriptor {
  int fd;
  ~Descriptor() {
    os::close_file(fd);
  }
};

}  // namespace

std::string read_file(const std::string& path, uint64_t limit) {
  uint64_t size = 0;
  Descriptor file{os::open_regular(path, size)};
  if (size > limit) {
    fail(
        ErrorCode::invalid_input,
        fmt::format(
            "[file] {}: {} bytes, at most {} allowed", path, size, limit
        )
    );
  }
  std::string text(size, '\0');
  os::read_exact(file.fd, text.data(), size, 0, path);
  return text;
}

bool file_exists(const std::string& path) {
  os::FileInfo info;
  return os::stat_path(path, info) && info.regular;
}

bool path_exists(const std::string& path) {
  os::FileInfo info;
  return os::stat_path(path, info, false);
}

bool directory_exists(const std::string& path) {
  os::FileInfo info;
  return os::stat_path(path, info) && info.directory;
}

std::string join_path(const std::string& directory, const std::string& name) {
  if (directory.empty() || directory.back() == '/') {
    return directory + name;
  }
  return directory + "/" + name;
}

std::string parent_path(const std::string& path) {
  size_t at = path.find_last_of('/');
  if (at == std::string::npos) {
    return ".";
  }
  return at == 0 ? "/" : path.substr(0, at);
}

std::string base_name(const std::string& path) {
  size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) {
    return path;
  }
  size_t at = path.find_last_of('/', end);
  size_t start = at == std::string::npos ? 0 : at + 1;
  return path.substr(start, end - start + 1);
}

std::shared_ptr<MappedFile> MappedFile::open(const std::string& path) {
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = path;
  Descriptor opened{os::open_regular(path, file->size_)};
  file->opened_ = os::file_state(opened.fd);
  file->data_ = os::map_file(opened.fd, file->size_, path);
  FaultGuard::watch(*file);
  return file;
}

MappedFile::~MappedFile() {
  FaultGuard::forget(*this);
  os::unmap(data_, size_);
}

bool MappedFile::changed() const {
  auto now = os::file_state(path_);
  return now && opened_ && now->device == opened_->device &&
         now->inode == opened_->inode &&
         (now->size != opened_->size || now->modified != opened_->modified);
}

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)),
      temporary_(path_ + ".tmp-" + os::random_suffix()) {
  fd_ = os::create_exclusive(temporary_);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) {
    os::close_file(fd_);
    os::remove_path(temporary_);
  }
}

void AtomicFile::write(const void* data, size_t count) {
  if (buffer_.size() + count > kWriteBuffer) {
    flush();
  }
  if (count >= kWriteBuffer) {
    os::write_all(fd_, data, count, path_);
  } else {
    buffer_.append(static_cast<const char*>(data), count);
  }
  written_ += count;
}

void AtomicFile::write(const std::string& text) {
  write(text.data(), text.size());
}

void AtomicFile::flush() {
  os::write_all(fd_, buffer_.data(), buffer_.size(), path_);
  buffer_.clear();
}

void AtomicFile::write_at(uint64_t offset, const void* data, size_t count) {
  os::write_at(fd_, data, count, offset, path_);
}

void AtomicFile::commit() {
  flush();
  os::sync_file(fd_, path_);
  os::rename_file(temporary_, path_);
  os::close_file(fd_);
  fd_ = -1;
}

}  // namespace mlxcel
