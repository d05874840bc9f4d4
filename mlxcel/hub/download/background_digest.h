#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "mlxcel/hub/download/digest.h"

namespace mlxcel::hub {

/// Hashes a file while it grows, on a thread of its own, so that receiving
/// does not wait for it.
class BackgroundDigest {
 public:
  /// `fd` is open for reading as long as the object lives; `size` is that of
  /// the whole content, `path` what messages call it.
  BackgroundDigest(
      const ContentId& id, uint64_t size, int fd, std::string path
  );
  ~BackgroundDigest();
  BackgroundDigest(const BackgroundDigest&) = delete;
  BackgroundDigest& operator=(const BackgroundDigest&) = delete;

  /// The file has so many bytes now.
  void advance(uint64_t count);
  /// The hash of all that advance() named. Throws Error(io). Once.
  std::string finish();

 private:
  void work();
  void hash_all();

  Digest digest_;
  int fd_;
  std::string path_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t count_ = 0;
  bool complete_ = false;
  bool stopped_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace mlxcel::hub
