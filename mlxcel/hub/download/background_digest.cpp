#include "mlxcel/hub/download/background_digest.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "mlxcel/core/os.h"

namespace mlxcel::hub {

namespace {

constexpr uint64_t kPiece = 1 << 20;

}  // namespace

BackgroundDigest::BackgroundDigest(
    const ContentId& id, uint64_t size, int fd, std::string path
)
    : digest_(id, size), fd_(fd), path_(std::move(path)) {
  thread_ = std::thread([this] { work(); });
}

BackgroundDigest::~BackgroundDigest() {
  if (thread_.joinable()) {
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
}

void BackgroundDigest::advance(uint64_t count) {
  {
    std::lock_guard lock(mutex_);
    count_ = count;
  }
  changed_.notify_one();
}

std::string BackgroundDigest::finish() {
  {
    std::lock_guard lock(mutex_);
    complete_ = true;
  }
  changed_.notify_one();
  thread_.join();
  if (error_) {
    std::rethrow_exception(error_);
  }
  return digest_.finish();
}

void BackgroundDigest::work() {
  try {
    hash_all();
  } catch (...) {
    error_ = std::current_exception();
  }
}

void BackgroundDigest::hash_all() {
  std::vector<char> buffer(kPiece);
  uint64_t hashed = 0;
  while (true) {
    uint64_t until = 0;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] {
        return stopped_ || complete_ || count_ > hashed;
      });
      until = count_;
      if (stopped_ || until == hashed) {
        return;
      }
    }
    auto piece = static_cast<size_t>(std::min(kPiece, until - hashed));
    os::read_exact(fd_, buffer.data(), piece, hashed, path_);
    digest_.add(buffer.data(), piece);
    hashed += piece;
  }
}

}  // namespace mlxcel::hub
