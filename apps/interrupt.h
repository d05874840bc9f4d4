#pragma once

#include <atomic>

namespace mlxcel::apps {

/// Set by an interrupt while a turn runs; the turn ends at its next token.
std::atomic<bool>& interrupted();

/// An interrupt outside a turn ends the process with 130.
void install_interrupt_handler();

/// While it lives, an interrupt sets interrupted() instead.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
};

}  // namespace mlxcel::apps
