#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mlxcel/backend/tensor.h"

namespace mlxcel::backend::cpu {

/// float32 rows behind a Tensor, 64-byte aligned, without padding.
class CpuTensor : public TensorStorage {
 public:
  float* data = nullptr;
  /// Rows are the step's logit rows, not all of its rows.
  bool selected = false;

  float* row(int64_t index) const {
    return data + index * cols;
  }

 private:
  friend class Arena;
  explicit CpuTensor(StorageOwner* owner) : TensorStorage(owner) {}
  ~CpuTensor() = default;

  int size_class_ = 0;
  int64_t last_step_ = 0;
};

/// Hands out tensors and takes them back: a free list per size class, so that
/// a step like the one before allocates nothing. Must outlive its tensors.
class Arena : public StorageOwner {
 public:
  Arena() = default;
  /// `hollow`: tensors have sizes and no memory, for a meter.
  explicit Arena(bool hollow) : hollow_(hollow) {}
  ~Arena() override;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Values are undefined. Throws Error(out_of_memory).
  Tensor make(int64_t rows, int64_t cols);
  /// Ends a step: frees memory that no step has used for a while, so that a
  /// long prompt's buffers don't stay for good.
  void end_step();

  /// Bytes that the arena holds, in use or not.
  int64_t held_bytes() const {
    return held_bytes_;
  }

 private:
  // Four classes per doubling: at most a quarter is wasted.
  static constexpr int kClasses = 4 * 60;

  void recycle(TensorStorage* storage) noexcept override;
  void destroy(CpuTensor* tensor) noexcept;

  std::vector<CpuTensor*> free_[kClasses];
  int64_t step_ = 0;
  int64_t held_bytes_ = 0;
  bool hollow_ = false;
};

inline const CpuTensor& cpu_tensor(const Tensor& tensor) {
  return *static_cast<const CpuTensor*>(tensor.storage());
}
inline CpuTensor& cpu_tensor(Tensor& tensor) {
  return *static_cast<CpuTensor*>(tensor.storage());
}

}  // namespace mlxcel::backend::cpu
