#pragma once

#include <cstdint>
#include <utility>

namespace mlxcel::backend {

class TensorStorage;

/// Whoever hands out storages and takes them back.
class StorageOwner {
 public:
  virtual ~StorageOwner() = default;
  virtual void recycle(TensorStorage* storage) noexcept = 0;
};

/// A backend's own value behind a Tensor. Not shared between threads.
class TensorStorage {
 public:
  int64_t rows = 0;
  int64_t cols = 0;

 protected:
  explicit TensorStorage(StorageOwner* owner) : owner_(owner) {}
  ~TensorStorage() = default;

 private:
  friend class Tensor;
  StorageOwner* owner_;
  int references_ = 0;
};

/// A handle to an intermediate value [rows, cols] of the current step. Values
/// are float32 on the cpu backend, the step's activation type on others. The
/// memory returns to the backend with the last handle. Layer code sees only
/// the sizes.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(TensorStorage* storage) : storage_(storage) {
    ++storage_->references_;
  }
  Tensor(const Tensor& other) : storage_(other.storage_) {
    if (storage_ != nullptr) {
      ++storage_->references_;
    }
  }
  Tensor(Tensor&& other) noexcept
      : storage_(std::exchange(other.storage_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(storage_, other.storage_);
    return *this;
  }
  ~Tensor() {
    if (storage_ != nullptr && --storage_->references_ == 0) {
      storage_->owner_->recycle(storage_);
    }
  }

  explicit operator bool() const {
    return storage_ != nullptr;
  }
  int64_t rows() const {
    return storage_->rows;
  }
  int64_t cols() const {
    return storage_->cols;
  }
  TensorStorage* storage() const {
    return storage_;
  }
  /// True if no other handle shares the value: it may be changed in place.
  bool unique() const {
    return storage_->references_ == 1;
  }

 private:
  TensorStorage* storage_ = nullptr;
};

}  // namespace mlxcel::backend
