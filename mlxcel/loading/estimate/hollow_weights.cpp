#include "mlxcel/loading/estimate/hollow_weights.h"

#include <array>
#include <unordered_set>

#include "mlxcel/core/error.h"
#include "mlxcel/core/log.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/weights/transform/expert_stacks.h"
#include "mlxcel/weights/vendor_format.h"

namespace mlxcel {

namespace {

constexpr const char* kOrigin = "the checkpoint";

// A single number, such as the scale of a whole matrix, reads as zero: nothing
// that is allocated depends on it.
class HollowSource : public WeightSource {
 public:
  explicit HollowSource(uint64_t size) : size_(size) {}
  std::span<const std::byte> bytes() const override {
    static constexpr std::array<std::byte, sizeof(double)> kNumber = {};
    if (size_ <= kNumber.size()) {
      return std::span(kNumber).first(size_);
    }
    fail(ErrorCode::internal, "[estimate] the bytes of a tensor were read");
  }
  std::string origin() const override {
    return kOrigin;
  }

 private:
  uint64_t size_;
};

// Calls f(entry, weight) for each tensor. The sources are one block: a
// checkpoint has up to some hundred thousand tensors.
template <typename F>
void for_each_hollow(const TensorListing& listing, F&& f) {
  auto sources = std::make_shared<std::vector<HollowSource>>();
  sources->reserve(listing.tensors().size());
  for (const TensorEntry& entry : listing.tensors()) {
    sources->emplace_back(entry.end - entry.begin);
    std::shared_ptr<const WeightSource> source(sources, &sources->back());
    f(entry,
      Weight{entry.dtype, entry.shape, Component::core, std::move(source)});
  }
}

}  // namespace

WeightMap hollow_weights(const TensorListing& listing) {
  WeightMap weights;
  weights.origin = kOrigin;
  for_each_hollow(listing, [&](const TensorEntry& entry, Weight weight) {
    weights.insert(entry.name, std::move(weight));
  });
  return weights;
}

WeightMap prepared_hollow_weights(
    const TensorListing& listing, const Json& config, const Preparation& how
) {
  LogPause pause;
  WeightMap weights;
  weights.origin = kOrigin;
  // The planes of another exporter are stacked once they are MLX's.
  bool stack = vendor_format(config) == VendorFormat::none;
  ExpertCollector experts;
  for_each_hollow(listing, [&](const TensorEntry& entry, Weight weight) {
    if (!stack || !experts.take(entry.name, weight)) {
      weights.insert(entry.name, std::move(weight));
    }
  });
  experts.finish(weights, declared_experts(config));
  prepare_text_weights(config, how, weights);
  return weights;
}

TensorListing outline_of(const WeightMap& weights) {
  TensorListing listing;
  listing.reserve(weights.size());
  uint64_t at = 0;
  std::unordered_set<const WeightSource*> seen;
  for (const auto& [name, weight] : weights) {
    if (!seen.insert(weight.source.get()).second) {
      continue;
    }
    uint64_t count = checked_product(weight.shape).value_or(0);
    auto size = static_cast<uint64_t>(dtype_size(weight.dtype));
    uint64_t end = at + checked_mul(count, size).value_or(0);
    listing.add({name, weight.dtype, weight.shape, at, end});
    at = end;
  }
  return listing;
}

}  // namespace mlxcel
