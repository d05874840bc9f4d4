#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace mlxcel {

/// What one rendering may use. A template that needs more is an error.
struct TemplateLimits {
  /// Nodes evaluated, plus one per KiB of text made or scanned.
  uint64_t steps = 50'000'000;
  /// Bytes of the result, and of any string on the way to it.
  size_t text = size_t{128} << 20;
  /// Bytes of all values alive at once.
  size_t memory = size_t{512} << 20;
  /// Macro calls, recursive loops and `caller()` inside each other.
  int calls = 200;
  double seconds = 10;
};

namespace chat {

/// Counts what a rendering uses and stops it beyond the limits. One is active
/// per thread while a template runs; values made meanwhile report to it.
class Budget {
 public:
  /// Becomes the active one of this thread until destroyed.
  explicit Budget(const TemplateLimits& limits);
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  /// The active one, or null while no template runs.
  static Budget* active();

  const TemplateLimits& limits() const {
    return limits_;
  }
  /// Counts one step of `bytes` bytes of text. Throws Fault beyond the limit.
  void step(size_t bytes = 0) {
    steps_ += 1 + (bytes >> 10);
    if (steps_ >= next_check_) {
      check();
    }
  }
  /// Counts memory of a new value. Throws Fault beyond the limit.
  void allocate(size_t bytes);
  void release(size_t bytes) {
    memory_ -= bytes;
  }

 private:
  void check();

  TemplateLimits limits_;
  uint64_t steps_ = 0;
  uint64_t next_check_ = 0;
  size_t memory_ = 0;
  std::chrono::steady_clock::time_point deadline_;
  Budget* outer_;
};

/// Counts a scan of `bytes` bytes of text, if a template runs.
inline void count_work(size_t bytes) {
  if (Budget* budget = Budget::active()) {
    budget->step(bytes);
  }
}

/// Throws Fault if a string or a result of `bytes` bytes is too large.
void check_text_size(uint64_t bytes);
/// Throws Fault if a list of `items` values is too large.
void check_item_count(uint64_t items);

}  // namespace chat
}  // namespace mlxcel
