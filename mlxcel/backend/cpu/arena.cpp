#include "mlxcel/backend/cpu/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <new>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"

namespace mlxcel::backend::cpu {

namespace {

constexpr std::align_val_t kAlignment{64};
constexpr uint64_t kSmallest = 1024;  // bytes
// Steps after which unused memory goes back to the system.
constexpr int64_t kPatience = 32;

// Class c holds (4 + c % 4) * 2^(c / 4) / 4 times the smallest size.
uint64_t class_bytes(int size_class) {
  return (kSmallest / 4 * static_cast<uint64_t>(4 + size_class % 4))
         << (size_class / 4);
}

int class_of(uint64_t bytes) {
  if (bytes <= kSmallest) {
    return 0;
  }
  int octave = std::bit_width((bytes - 1) / kSmallest) - 1;
  int size_class = 4 * octave;
  while (class_bytes(size_class) < bytes) {
    ++size_class;
  }
  return size_class;
}

}  // namespace

Arena::~Arena() {
  for (std::vector<CpuTensor*>& list : free_) {
    for (CpuTensor* tensor : list) {
      destroy(tensor);
    }
  }
}

Tensor Arena::make(int64_t rows, int64_t cols) {
  auto bytes = checked_mul(
      static_cast<uint64_t>(rows), static_cast<uint64_t>(cols) * sizeof(float)
  );
  if (rows < 0 || cols < 0 || !bytes || *bytes > uint64_t{1} << 46) {
    fail(
        ErrorCode::out_of_memory,
        fmt::format("[cpu] a tensor of {} x {} values", rows, cols)
    );
  }
  int size_class = class_of(*bytes);
  std::vector<CpuTensor*>& list = free_[size_class];
  CpuTensor* tensor;
  if (!list.empty()) {
    tensor = list.back();
    list.pop_back();
  } else {
    uint64_t size = class_bytes(size_class);
    void* data =
        hollow_ ? nullptr : ::operator new(size, kAlignment, std::nothrow);
    if (data == nullptr && !hollow_) {
      fail(
          ErrorCode::out_of_memory,
          fmt::format("[cpu] no memory for {} x {} values", rows, cols)
      );
    }
    tensor = new CpuTensor(this);
    tensor->data = static_cast<float*>(data);
    tensor->size_class_ = size_class;
    held_bytes_ += static_cast<int64_t>(size);
    // recycle() must not allocate.
    list.reserve(list.capacity() + 1);
  }
  tensor->rows = rows;
  tensor->cols = cols;
  tensor->selected = false;
  tensor->last_step_ = step_;
  return Tensor(tensor);
}

void Arena::recycle(TensorStorage* storage) noexcept {
  auto* tensor = static_cast<CpuTensor*>(storage);
  free_[tensor->size_class_].push_back(tensor);
}

void Arena::destroy(CpuTensor* tensor) noexcept {
  held_bytes_ -= static_cast<int64_t>(class_bytes(tensor->size_class_));
  ::operator delete(tensor->data, kAlignment);
  delete tensor;
}

void Arena::end_step() {
  ++step_;
  if (step_ % kPatience != 0) {
    return;
  }
  for (std::vector<CpuTensor*>& list : free_) {
    std::erase_if(list, [&](CpuTensor* tensor) {
      if (tensor->last_step_ + kPatience > step_) {
        return false;
      }
      destroy(tensor);
      return true;
    });
  }
}

}  // namespace mlxcel::backend::cpu
