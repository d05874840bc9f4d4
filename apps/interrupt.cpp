#include "apps/interrupt.h"

#include <unistd.h>

#include <csignal>

namespace mlxcel::apps {

namespace {

constexpr int kInterruptedStatus = 130;

std::atomic<bool> interrupt_flag = false;
std::atomic<bool> turn_running = false;

void on_interrupt(int) {
  // A second interrupt within a turn ends the process as well.
  if (!turn_running.load() || interrupt_flag.exchange(true)) {
    _exit(kInterruptedStatus);
  }
}

}  // namespace

std::atomic<bool>& interrupted() {
  return interrupt_flag;
}

void install_interrupt_handler() {
  std::signal(SIGINT, &on_interrupt);
  std::signal(SIGPIPE, SIG_IGN);
}

InterruptScope::InterruptScope() {
  interrupt_flag.store(false);
  turn_running.store(true);
}

InterruptScope::~InterruptScope() {
  turn_running.store(false);
}

}  // namespace mlxcel::apps
