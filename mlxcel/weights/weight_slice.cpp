#include "mlxcel/weights/weight_slice.h"

#include <fmt/format.h>

#include <mutex>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"

namespace mlxcel {

namespace {

class SliceSource final : public WeightSource {
 public:
  SliceSource(
      std::shared_ptr<const WeightSource> whole, uint64_t begin, uint64_t size
  )
      : whole_(std::move(whole)), begin_(begin), size_(size) {}

  std::span<const std::byte> bytes() const override {
    return whole_->bytes().subspan(begin_, size_);
  }
  std::string origin() const override {
    return whole_->origin();
  }
  bool faulted() const override {
    return whole_->faulted();
  }
  std::shared_ptr<const MappedFile> file() const override {
    return whole_->file();
  }

 private:
  std::shared_ptr<const WeightSource> whole_;
  uint64_t begin_;
  uint64_t size_;
};

class StackSource final : public WeightSource {
 public:
  explicit StackSource(std::vector<Weight> parts) : parts_(std::move(parts)) {}

  const std::vector<Weight>& parts() const {
    return parts_;
  }
  std::span<const std::byte> bytes() const override {
    std::lock_guard lock(mutex_);
    if (joined_.empty()) {
      for (const Weight& part : parts_) {
        std::span<const std::byte> bytes = part.bytes();
        joined_.insert(joined_.end(), bytes.begin(), bytes.end());
      }
      if (faulted()) {
        joined_.clear();
        fail(
            ErrorCode::io, fmt::format("[weights] {}: cannot be read", origin())
        );
      }
    }
    return joined_;
  }
  std::string origin() const override {
    return parts_.front().source->origin();
  }
  void release() const override {
    for (const Weight& part : parts_) {
      part.source->release();
    }
  }
  bool faulted() const override {
    for (const Weight& part : parts_) {
      if (part.source->faulted()) {
        return true;
      }
    }
    return false;
  }

 private:
  std::vector<Weight> parts_;
  mutable std::mutex mutex_;
  mutable std::vector<std::byte> joined_;
};

uint64_t row_bytes(const Weight& weight) {
  uint64_t bytes = static_cast<uint64_t>(dtype_size(weight.dtype));
  for (size_t i = 1; i < weight.shape.size(); ++i) {
    bytes *= static_cast<uint64_t>(weight.shape[i]);
  }
  return bytes;
}

}  // namespace

Weight slice_rows(const Weight& weight, int64_t first, int64_t count) {
  if (first == 0 && count == weight.shape[0]) {
    return weight;
  }
  Weight slice = weight;
  slice.shape[0] = count;
  const auto* stack = dynamic_cast<const StackSource*>(weight.source.get());
  if (stack != nullptr && count > 0) {
    auto begin = stack->parts().begin() + first;
    slice.source =
        std::make_shared<StackSource>(std::vector<Weight>(begin, begin + count)
        );
    return slice;
  }
  uint64_t row = row_bytes(weight);
  slice.source = std::make_shared<SliceSource>(
      weight.source,
      static_cast<uint64_t>(first) * row,
      static_cast<uint64_t>(count) * row
  );
  return slice;
}

Weight stack_weights(std::vector<Weight> parts) {
  Weight stack = parts.front();
  stack.shape.insert(stack.shape.begin(), std::ssize(parts));
  stack.source = std::make_shared<StackSource>(std::move(parts));
  return stack;
}

Weight element_of(const Weight& weight, int64_t index) {
  if (const auto* stack =
          dynamic_cast<const StackSource*>(weight.source.get())) {
    return stack->parts()[static_cast<size_t>(index)];
  }
  Weight element = slice_rows(weight, index, 1);
  element.shape.erase(element.shape.begin());
  return element;
}

}  // namespace mlxcel
