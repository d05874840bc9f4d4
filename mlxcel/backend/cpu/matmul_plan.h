#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <vector>

#include "mlxcel/backend/cpu/matmul.h"
#include "mlxcel/backend/cpu/matmul_kernels.h"
#include "mlxcel/backend/cpu/unroll.h"

/// What the two families of `linear` share: views, scratch, epilogues.
namespace mlxcel::backend::cpu {

RowFormat row_format(const WeightFormat& format, int64_t cols);
RowSpan part_rows(
    const CpuLinear::Part& part,
    const RowFormat& format,
    int64_t first,
    int64_t rows
);

/// Whether there are kernels for int8 activations. E4M3 codes are too wide,
/// and rows that end within 32 columns are too rare.
inline bool has_int8(const RowFormat& format) {
  return format.bits > 0 && format.coding != Coding::e4m3 &&
         format.cols % 32 == 0;
}

/// What is worked out once per weight.
struct LinearPlan {
  std::vector<RowFormat> formats;  // of the parts
  bool biased = false;             // some part has a layer bias
};

/// Memory on a cache line that only grows.
class Buffer {
 public:
  std::byte* get(int64_t bytes) {
    if (bytes > size_) {
      data_.reset(static_cast<std::byte*>(
          ::operator new(static_cast<size_t>(bytes), kAlign)
      ));
      size_ = bytes;
    }
    return data_.get();
  }
  std::byte* data() const {
    return data_.get();
  }
  int64_t size() const {
    return size_;
  }

 private:
  static constexpr std::align_val_t kAlign{64};
  struct Free {
    void operator()(std::byte* data) const {
      ::operator delete(data, kAlign);
    }
  };
  std::unique_ptr<std::byte, Free> data_;
  int64_t size_ = 0;
};

/// Rows [first, first + rows) of a part.
struct Block {
  int part = 0;
  int64_t first = 0;
  int64_t rows = 0;
};

/// How a part is cut into blocks.
struct Cut {
  int64_t step = 0;  // rows of a block
  int64_t count = 0;
};

struct alignas(64) Queue {
  std::atomic<int64_t> next = 0;
};

/// Activations as int8 for parts of one group size and order.
struct Quantized {
  int group = 0;
  Order order = Order::natural;
  Buffer memory;
  Int8Rows rows{};
};

/// What one call writes and all threads read. A core that writes a line again
/// which another one has read waits for long, so calls take turns with slots;
/// the weights that stream by in between clear the caches of them.
struct Slot {
  std::vector<Cut> cuts;         // of the parts
  std::vector<int> activations;  // of the parts: index into `quantized`
  std::vector<Quantized> quantized;
  size_t used = 0;
  Buffer call;
};

struct MatmulScratch::Impl {
  static constexpr size_t kSlots = 8;
  Slot slots[kSlots];
  size_t next_slot = 0;
  Buffer padded;  // float32 activations, rows apart from each other in cache
  std::vector<Buffer> threads;
  std::unique_ptr<Queue[]> queues;
  int queue_count = 0;

  Slot& take_slot() {
    return slots[next_slot++ % kSlots];
  }
  /// Has the lines that the next call writes first brought near.
  void fetch_next_slot() const {
    const Slot& slot = slots[next_slot % kSlots];
    fetch_for_write(slot.call.data(), std::min<int64_t>(slot.call.size(), 512));
    if (slot.used > 0) {
      const Buffer& memory = slot.quantized[0].memory;
      fetch_for_write(memory.data(), std::min<int64_t>(memory.size(), 2048));
    }
  }
  /// One queue per thread, all at their start.
  Queue* start_queues(int count) {
    if (count > queue_count) {
      queues = std::make_unique<Queue[]>(static_cast<size_t>(count));
      queue_count = count;
    }
    for (int i = 0; i < count; ++i) {
      queues[i].next.store(0, std::memory_order_relaxed);
    }
    return queues.get();
  }
};

/// One call of `linear`.
struct MatmulJob {
  const CpuLinear& weight;
  const float* x;
  int64_t ldx;
  int64_t count;
  ActivationMode mode;
  const MatmulKernels& kernels;
  MatmulEpilogue epilogue;
  float* y;
  int64_t ldy;
  MatmulScratch::Impl& scratch;
  Slot& slot;
  ThreadPool& pool;

  int parts() const {
    return static_cast<int>(weight.parts.size());
  }
  const CpuLinear::Part& part(int index) const {
    return weight.parts[static_cast<size_t>(index)];
  }
  const RowFormat& format(int index) const {
    return weight.plan->formats[static_cast<size_t>(index)];
  }
  const Int8Rows& int8_rows(int index) const {
    int at = slot.activations[static_cast<size_t>(index)];
    return slot.quantized[static_cast<size_t>(at)].rows;
  }
  /// Whether the part is multiplied with int8 activations.
  bool is_int8(int index) const {
    return mode == ActivationMode::int8 && has_int8(format(index));
  }
  bool same_kernel(int a, int b) const;
  /// Quantises the activations in each order that the parts want. `order_of`
  /// maps a part's bit width to the order. Many rows are cut into one run per
  /// thread.
  void quantize(Order (*order_of)(int bits));
  /// Stores a block's rows for rows [begin, end) of x: `a` [end - begin, ld]
  /// as it came from the kernel, `b` the same of the second part of a gate or
  /// null.
  void store(
      const Block& block,
      int64_t begin,
      int64_t end,
      const float* a,
      const float* b,
      int64_t ld
  ) const;
  /// True if what a kernel writes is the result already.
  bool plain() const {
    return !weight.plan->biased && !epilogue.activation && !epilogue.gate &&
           epilogue.residual == nullptr;
  }

 private:
  void quantize(Quantized& target);
};

void run_decode(MatmulJob& job);
void run_prefill(MatmulJob& job);

}  // namespace mlxcel::backend::cpu
