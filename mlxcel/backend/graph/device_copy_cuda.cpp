#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "mlx/backend/cuda/allocator.h"
#include "mlxcel/backend/graph/device_copy.h"
#include "mlxcel/core/log.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/text.h"
#include "mlxcel/core/thread_pool.h"

namespace mlxcel::backend::graph {

namespace {

namespace mx = mlx::core;

constexpr size_t kBufferBytes = 64 << 20;
constexpr size_t kBuffers = 4;
// What one thread copies at a time.
constexpr int64_t kPieceBytes = 4 << 20;

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw std::runtime_error(
        fmt::format("[cuda] {}: {}", what, cudaGetErrorString(status))
    );
  }
}

bool pinned_wanted() {
  const char* value = os::environment("MLXCEL_CUDA_PINNED_LOAD");
  std::string word = ascii_lower(value == nullptr ? "" : value);
  return word != "0" && word != "false" && word != "off" && word != "no";
}

void warn_unpinned(cudaError_t status) {
  static std::once_flag once;
  std::call_once(once, [&] {
    log_warning(fmt::format(
        "[cuda] no page-locked memory ({}): weights are copied from pageable "
        "memory, which is slower",
        cudaGetErrorString(status)
    ));
  });
}

// A page-locked buffer and the moment when the device has read it.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  ~PinnedBuffer() {
    if (data_ != nullptr) {
      cudaFreeHost(data_);
      cudaEventDestroy(read_);
    }
  }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;

  // False if there is none to be had.
  bool allocate() {
    if (data_ != nullptr) {
      return true;
    }
    cudaError_t status = cudaMallocHost(&data_, kBufferBytes);
    if (status != cudaSuccess) {
      cudaGetLastError();  // not the next call's fault
      data_ = nullptr;
      warn_unpinned(status);
      return false;
    }
    check(
        cudaEventCreateWithFlags(&read_, cudaEventDisableTiming),
        "cudaEventCreate"
    );
    return true;
  }

  void send(const std::byte* from, size_t count, void* to, cudaStream_t by) {
    check(cudaEventSynchronize(read_), "waiting for a copy");
    auto* target = static_cast<std::byte*>(data_);
    ThreadPool::instance().parallel_for(
        static_cast<int64_t>(count),
        kPieceBytes,
        [&](int64_t begin, int64_t end) {
          std::memcpy(
              target + begin, from + begin, static_cast<size_t>(end - begin)
          );
        }
    );
    check(
        cudaMemcpyAsync(to, data_, count, cudaMemcpyHostToDevice, by),
        "cudaMemcpyAsync"
    );
    check(cudaEventRecord(read_, by), "cudaEventRecord");
  }

 private:
  void* data_ = nullptr;
  cudaEvent_t read_ = nullptr;
};

class DeviceCopies {
 public:
  static DeviceCopies& instance() {
    static DeviceCopies copies;
    return copies;
  }

  void send(std::span<const std::byte> bytes, void* to) {
    std::lock_guard lock(mutex_);
    if (stream_ == nullptr) {
      pinned_ = pinned_wanted();
      check(
          cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
          "cudaStreamCreate"
      );
    }
    auto* target = static_cast<std::byte*>(to);
    while (!bytes.empty()) {
      size_t count = std::min(bytes.size(), kBufferBytes);
      PinnedBuffer* buffer = pinned_ ? next() : nullptr;
      if (buffer != nullptr) {
        buffer->send(bytes.data(), count, target, stream_);
      } else {
        check(
            cudaMemcpyAsync(
                target, bytes.data(), count, cudaMemcpyHostToDevice, stream_
            ),
            "cudaMemcpyAsync"
        );
      }
      bytes = bytes.subspan(count);
      target += count;
    }
  }

  void finish() {
    std::lock_guard lock(mutex_);
    if (stream_ == nullptr) {
      return;
    }
    cudaError_t status = cudaStreamSynchronize(stream_);
    buffers_ = {};
    cudaStreamDestroy(stream_);
    stream_ = nullptr;
    check(status, "copying weights to the device");
  }

 private:
  // Null if there is no page-locked memory.
  PinnedBuffer* next() {
    std::unique_ptr<PinnedBuffer>& buffer = buffers_[turn_++ % kBuffers];
    if (buffer == nullptr) {
      buffer = std::make_unique<PinnedBuffer>();
    }
    pinned_ = buffer->allocate();
    return pinned_ ? buffer.get() : nullptr;
  }

  std::mutex mutex_;
  cudaStream_t stream_ = nullptr;
  std::array<std::unique_ptr<PinnedBuffer>, kBuffers> buffers_;
  size_t turn_ = 0;
  bool pinned_ = false;
};

}  // namespace

std::optional<mx::array> copy_to_device(
    std::span<const std::byte> bytes, const mx::Shape& shape, mx::Dtype dtype
) {
  if (bytes.empty() || !mx::cu::is_available()) {
    return std::nullopt;
  }
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes.size()), "cudaMalloc");
  // As MLX's own buffers of device memory are; freed by the array's last
  // owner.
  auto* buffer = new mx::cu::CudaBuffer{memory, bytes.size(), device};
  mx::allocator::Data data(
      mx::allocator::Buffer(buffer),
      [](mx::allocator::Buffer held) {
        auto* own = static_cast<mx::cu::CudaBuffer*>(held.ptr());
        cudaFree(own->data);
        delete own;
      }
  );
  mx::array result(shape, dtype, nullptr, {});
  result.set_data(std::move(data));
  result.set_status(mx::array::Status::available);
  DeviceCopies::instance().send(bytes, memory);
  return result;
}

void finish_device_copies() {
  DeviceCopies::instance().finish();
}

}  // namespace mlxcel::backend::graph
