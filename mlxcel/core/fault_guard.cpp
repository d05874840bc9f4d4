#include "mlxcel/core/fault_guard.h"

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

}  // namespace

void FaultGuard::install() {
  static std::once_flag once;
  std::call_once(once, [] { os::on_memory_fault(&FaultGuard::absorb); });
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
      file->faulted_.store(true, std::memory_order_release);
      size_t into_page = at & (os::page_size() - 1);
      return os::replace_page(static_cast<std::byte*>(address) - into_page);
    }
  }
  return false;
}

}  // namespace mlxcel
