#include <signal.h>
#include <unistd.h>

#include "mlxcel/core/error.h"
#include "mlxcel/core/os.h"

namespace mlxcel::os {

namespace {

bool (*absorb_fault)(void*) noexcept = nullptr;
void (*interrupt_handler)() = nullptr;
struct sigaction previous_fault_action;

void handle_fault(int signal, siginfo_t* info, void* context) {
  if (absorb_fault(info->si_addr)) {
    return;
  }
  const auto& previous = previous_fault_action;
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
}

void handle_interrupt(int) {
  interrupt_handler();
}

}  // namespace

void on_memory_fault(bool (*absorb)(void* address) noexcept) {
  page_size();  // cached now: the handler must not be the first to ask
  absorb_fault = absorb;
  struct sigaction action = {};
  action.sa_sigaction = &handle_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  if (::sigaction(SIGBUS, &action, &previous_fault_action) != 0) {
    fail(ErrorCode::internal, "[fault guard] cannot handle SIGBUS");
  }
}

void on_interrupt(void (*handler)(), bool restart) {
  interrupt_handler = handler;
  struct sigaction action = {};
  action.sa_handler = &handle_interrupt;
  action.sa_flags = restart ? SA_RESTART : 0;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
}

void ignore_write_signals() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

void exit_now(int status) noexcept {
  ::_exit(status);
}

}  // namespace mlxcel::os
