#include "apps/interrupt.h"

#include <signal.h>
#include <unistd.h>

namespace mlxcel::apps {

namespace {

constexpr int kInterruptedStatus = 130;

enum State : int { kElsewhere, kTurn, kLine };

std::atomic<bool> interrupt_flag = false;
std::atomic<int> state = kElsewhere;

void on_interrupt(int) {
  bool again = interrupt_flag.exchange(true);
  int now = state.load();
  // A second interrupt within a turn ends the process as well.
  if (now == kElsewhere || (now == kTurn && again)) {
    _exit(kInterruptedStatus);
  }
}

// While a line is awaited, a read must end; else system calls go on.
void enter(int next) {
  interrupt_flag.store(false);
  state.store(next);
  struct sigaction action = {};
  action.sa_handler = &on_interrupt;
  action.sa_flags = next == kLine ? 0 : SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
}

}  // namespace

std::atomic<bool>& interrupted() {
  return interrupt_flag;
}

void install_interrupt_handler() {
  enter(kElsewhere);
  // A reader that is gone or a file that may not grow is an error of write().
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

InterruptScope::InterruptScope() : outer_(state.load()) {
  enter(kTurn);
}

InterruptScope::~InterruptScope() {
  enter(outer_);
}

LineScope::LineScope() {
  enter(kLine);
}

LineScope::~LineScope() {
  enter(kElsewhere);
}

}  // namespace mlxcel::apps
