#include "apps/interrupt.h"

#include "mlxcel/core/os.h"

namespace mlxcel::apps {

namespace {

constexpr int kInterruptedStatus = 130;

enum State : int { kElsewhere, kTurn, kLine };

std::atomic<bool> interrupt_flag = false;
std::atomic<int> state = kElsewhere;

void on_interrupt() {
  bool again = interrupt_flag.exchange(true);
  int now = state.load();
  // A second interrupt within a turn ends the process as well.
  if (now == kElsewhere || (now == kTurn && again)) {
    os::exit_now(kInterruptedStatus);
  }
}

// While a line is awaited, a read must end; else system calls go on.
void enter(int next) {
  interrupt_flag.store(false);
  state.store(next);
  os::on_interrupt(&on_interrupt, next != kLine);
}

}  // namespace

std::atomic<bool>& interrupted() {
  return interrupt_flag;
}

void install_interrupt_handler() {
  enter(kElsewhere);
  os::ignore_write_signals();
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
