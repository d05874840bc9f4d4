#include "mlxcel/weights/transform/lazy_planes.h"

#include <mutex>

#include "mlxcel/weights/weight_files.h"

namespace mlxcel {

namespace {

using Make = std::function<
    void(const std::vector<Weight>& inputs, std::vector<std::byte*> planes)>;

class Planes {
 public:
  Planes(std::vector<Weight> inputs, std::vector<int64_t> sizes, Make make)
      : origin_(inputs.front().source->origin()),
        inputs_(std::move(inputs)),
        sizes_(std::move(sizes)),
        make_(std::move(make)) {}

  std::span<const std::byte> bytes(size_t plane) {
    std::lock_guard lock(mutex_);
    if (make_) {
      make();
    }
    return {memory_[plane].get(), static_cast<size_t>(sizes_[plane])};
  }

  const std::string& origin() const {
    return origin_;
  }

 private:
  void make() {
    std::vector<std::unique_ptr<std::byte[]>> memory;
    std::vector<std::byte*> planes;
    for (int64_t size : sizes_) {
      memory.push_back(
          std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(size))
      );
      planes.push_back(memory.back().get());
    }
    WeightFiles files;
    for (const Weight& input : inputs_) {
      files.add(input);
    }
    make_(inputs_, planes);
    files.check();
    for (const Weight& input : inputs_) {
      input.source->release();
    }
    memory_ = std::move(memory);
    make_ = nullptr;
    inputs_.clear();
  }

  std::mutex mutex_;
  std::string origin_;
  std::vector<Weight> inputs_;
  std::vector<int64_t> sizes_;
  Make make_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

class PlaneSource final : public WeightSource {
 public:
  PlaneSource(std::shared_ptr<Planes> planes, size_t index)
      : planes_(std::move(planes)), index_(index) {}
  std::span<const std::byte> bytes() const override {
    return planes_->bytes(index_);
  }
  std::string origin() const override {
    return planes_->origin();
  }

 private:
  std::shared_ptr<Planes> planes_;
  size_t index_;
};

}  // namespace

std::vector<std::shared_ptr<const WeightSource>> lazy_planes(
    std::vector<Weight> inputs, std::vector<int64_t> sizes, Make make
) {
  size_t count = sizes.size();
  auto planes = std::make_shared<Planes>(
      std::move(inputs), std::move(sizes), std::move(make)
  );
  std::vector<std::shared_ptr<const WeightSource>> sources;
  for (size_t i = 0; i < count; ++i) {
    sources.push_back(std::make_shared<PlaneSource>(planes, i));
  }
  return sources;
}

}  // namespace mlxcel
