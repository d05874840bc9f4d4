#include "mlxcel/loading/estimate/hollow_weights.h"

#include <array>
#include <unordered_set>

#include "mlxcel/core/error.h"
#include "mlxcel/core/log.h"
#include "mlxcel/core/numbers.h"

namespace mlxcel {

namespace {

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
    return "the checkpoint";
  }

 private:
  uint64_t size_;
};

}  // namespace

WeightMap hollow_weights(const TensorListing& listing) {
  WeightMap weights;
  weights.origin = "the checkpoint";
  for (const TensorEntry& entry : listing.tensors()) {
    weights.insert(
        entry.name,
        {entry.dtype,
         entry.shape,
         Component::core,
         std::make_shared<HollowSource>(entry.end - entry.begin)}
    );
  }
  return weights;
}

WeightMap prepared_hollow_weights(
    const TensorListing& listing, const Json& config, const Preparation& how
) {
  LogPause pause;
  WeightMap weights = hollow_weights(listing);
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
