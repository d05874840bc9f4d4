#include "tests/unit/support/failing_new.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace mlxcel::test {

namespace {

std::atomic<bool> counting = false;
std::atomic<bool> fail_all = false;
std::atomic<bool> has_failed = false;
std::atomic<int64_t> left = 0;
size_t smallest = 0;

// Whether the allocation that is asked for may be had.
bool allowed(size_t size) {
  if (!counting.load(std::memory_order_relaxed) || size < smallest) {
    return true;
  }
  int64_t before = left.fetch_sub(1, std::memory_order_relaxed);
  if (before > 0 || (before < 0 && !fail_all.load())) {
    return true;
  }
  has_failed.store(true);
  return false;
}

void* take(size_t size, size_t alignment) {
  if (!allowed(size)) {
    return nullptr;
  }
  size = size == 0 ? 1 : size;
  if (alignment <= alignof(std::max_align_t)) {
    return std::malloc(size);
  }
  return std::aligned_alloc(
      alignment, (size + alignment - 1) / alignment * alignment
  );
}

void* take_or_throw(size_t size, size_t alignment) {
  void* memory = take(size, alignment);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

FailingNew::FailingNew(int64_t first, Which which, size_t size) {
  smallest = size;
  left = first;
  fail_all = which == Which::all;
  has_failed = false;
  counting = true;
}

FailingNew::~FailingNew() {
  counting = false;
}

bool FailingNew::failed() {
  return has_failed;
}

}  // namespace mlxcel::test

// The program's own, for all of it and the libraries that it loads.
void* operator new(size_t size) {
  return mlxcel::test::take_or_throw(size, 1);
}
void* operator new[](size_t size) {
  return mlxcel::test::take_or_throw(size, 1);
}
void* operator new(size_t size, std::align_val_t alignment) {
  return mlxcel::test::take_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return mlxcel::test::take_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return mlxcel::test::take(size, 1);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return mlxcel::test::take(size, 1);
}
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return mlxcel::test::take(size, static_cast<size_t>(alignment));
}
void* operator new
    [](size_t size,
       std::align_val_t alignment,
       const std::nothrow_t&) noexcept {
  return mlxcel::test::take(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
