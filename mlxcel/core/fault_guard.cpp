#include "mlxcel/core/fault_guard.h"

#include <signal.h>

#include <atomic>
#include <mutex>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/os.h"

namespace mlxcel {

namespace {

// A signal handler can't take locks or follow containers that move: a fixed
// table of slots, written under a mutex and read by the handler.
constexpr int kSlots = 4096;

struct Slot {
  std::atomic<MappedFile*> file = nullptr;
};

Slot slots[kSlots];
std::mutex slots_mutex;
struct sigaction previous_action;

}  // namespace

struct FaultHandler {
  static void handle(int signal, siginfo_t* info, void* context) {
    if (FaultGuard::absorb(info->si_addr)) {
      return;
    }
    if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
      previous_action.sa_sigaction(signal, info, context);
    } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
      previous_action.sa_handler(signal);
    } else {
      ::signal(signal, SIG_DFL);
      ::raise(signal);
    }
  }
};

void FaultGuard::install() {
  static std::once_flag once;
  std::call_once(once, [] {
    os::page_size();  // cached now: the handler must not call sysconf first
    struct sigaction action = {};
    action.sa_sigaction = &FaultHandler::handle;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    if (::sigaction(SIGBUS, &action, &previous_action) != 0) {
      fail(ErrorCode::internal, "[fault guard] cannot handle SIGBUS");
    }
  });
}

void FaultGuard::watch(MappedFile& file) {
  if (file.bytes().empty()) {
    return;
  }
  std::lock_guard lock(slots_mutex);
  for (Slot& slot : slots) {
    if (slot.file.load(std::memory_order_relaxed) == nullptr) {
      slot.file.store(&file, std::memory_order_release);
      return;
    }
  }
  fail(
      ErrorCode::unsupported,
      "[file] " + file.path() + ": too many files are mapped at once"
  );
}

void FaultGuard::forget(MappedFile& file) noexcept {
  std::lock_guard lock(slots_mutex);
  for (Slot& slot : slots) {
    if (slot.file.load(std::memory_order_relaxed) == &file) {
      slot.file.store(nullptr, std::memory_order_release);
      return;
    }
  }
}

bool FaultGuard::absorb(void* address) noexcept {
  auto at = reinterpret_cast<uintptr_t>(address);
  for (Slot& slot : slots) {
    MappedFile* file = slot.file.load(std::memory_order_acquire);
    if (file == nullptr) {
      continue;
    }
    auto start = reinterpret_cast<uintptr_t>(file->data_);
    if (at >= start && at - start < file->size_) {
      uintptr_t page = at & ~(os::page_size() - 1);
      file->faulted_.store(true, std::memory_order_release);
      return os::replace_page(reinterpret_cast<void*>(page));
    }
  }
  return false;
}

}  // namespace mlxcel
