#pragma once

#include <atomic>

namespace mlxcel::apps {

/// Set by an interrupt while a turn runs, which ends at its next token, or
/// while a line is awaited.
std::atomic<bool>& interrupted();

/// An interrupt outside the scopes below ends the process with 130.
void install_interrupt_handler();

/// While it lives, a turn runs: an interrupt sets interrupted().
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  int outer_;
};

/// While it lives, outside turns an interrupt sets interrupted() and ends a
/// read that waits.
class LineScope {
 public:
  LineScope();
  ~LineScope();
  LineScope(const LineScope&) = delete;
  LineScope& operator=(const LineScope&) = delete;
};

}  // namespace mlxcel::apps
