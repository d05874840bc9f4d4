#include "mlxcel/core/fault_guard.h"

#include <atomic>
#include <mutex>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/os_files.h"

namespace mlxcel {

namespace {

// A signal handler can't take locks or follow containers that move: a fixed
// table of slots, written under a mutex and read by the handler.
constexpr int kSlots = 4096;

struct Slot {
  std::atomic<MappedFile*> file = nullptr;
  std::atomic<uintptr_t> begin = 0;
  std::atomic<uintptr_t> end = 0;  // 0: the slot is free
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
  auto begin = reinterpret_cast<uintptr_t>(file.data_);
  std::lock_guard lock(slots_mutex);
  for (Slot& slot : slots) {
    if (slot.end.load(std::memory_order_relaxed) == 0) {
      slot.file.store(&file, std::memory_order_relaxed);
      slot.begin.store(begin, std::memory_order_relaxed);
      slot.end.store(begin + file.size_, std::memory_order_release);
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
      slot.end.store(0, std::memory_order_release);
      slot.file.store(nullptr, std::memory_order_relaxed);
      return;
    }
  }
}

// Other files may come and go meanwhile; the one concerned is being read, so
// it stays.
bool FaultGuard::absorb(void* address) noexcept {
  auto at = reinterpret_cast<uintptr_t>(address);
  for (Slot& slot : slots) {
    uintptr_t end = slot.end.load(std::memory_order_acquire);
    // The mapping goes on to the end of the file's last page.
    uintptr_t limit = (end + os::page_size() - 1) & ~(os::page_size() - 1);
    if (at >= limit || at < slot.begin.load(std::memory_order_acquire)) {
      continue;
    }
    MappedFile* file = slot.file.load(std::memory_order_acquire);
    if (slot.end.load(std::memory_order_acquire) != end) {
      continue;
    }
    file->faulted_.store(true, std::memory_order_release);
    return os::replace_pages(
        address, static_cast<std::byte*>(address) + (limit - at)
    );
  }
  return false;
}

}  // namespace mlxcel
