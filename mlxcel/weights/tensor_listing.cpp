#include "mlxcel/weights/tensor_listing.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "mlxcel/core/numbers.h"

namespace mlxcel {

namespace {

constexpr size_t kSlotsPerName = 3;
constexpr size_t kFewest = 64;

uint32_t hash_of(std::string_view name) {
  return static_cast<uint32_t>(std::hash<std::string_view>()(name));
}

}  // namespace

void TensorListing::reserve(size_t tensors) {
  tensors_.reserve(tensors);
  rehash(std::bit_ceil(std::max(kFewest, kSlotsPerName * tensors)));
}

void TensorListing::rehash(size_t slots) {
  slots_.assign(slots, {});
  for (size_t i = 0; i < tensors_.size(); ++i) {
    uint32_t hash = hash_of(tensors_[i].name);
    *slot_of(tensors_[i].name, hash) = {hash, static_cast<uint32_t>(i + 1)};
  }
}

// The slot of a name, or the free one that it would take.
TensorListing::Slot* TensorListing::slot_of(
    std::string_view name, uint32_t hash
) {
  size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    if (slot.place == 0 ||
        (slot.hash == hash && tensors_[slot.place - 1].name == name)) {
      return &slot;
    }
  }
}

void TensorListing::add(TensorEntry entry) {
  if (slots_.size() < kSlotsPerName * (tensors_.size() + 1)) {
    rehash(std::bit_ceil(
        std::max(kFewest, 2 * kSlotsPerName * (tensors_.size() + 1))
    ));
  }
  uint32_t hash = hash_of(entry.name);
  Slot* slot = slot_of(entry.name, hash);
  if (slot->place != 0) {
    tensors_[slot->place - 1] = std::move(entry);
    ++replaced_;
    return;
  }
  tensors_.push_back(std::move(entry));
  *slot = {hash, static_cast<uint32_t>(tensors_.size())};
}

size_t TensorListing::find(std::string_view name) const {
  if (slots_.empty()) {
    return kNone;
  }
  uint32_t hash = hash_of(name);
  size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at].place != 0; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.hash == hash && tensors_[slot.place - 1].name == name) {
      return slot.place - 1;
    }
  }
  return kNone;
}

const TensorEntry* TensorListing::entry(std::string_view name) const {
  size_t place = find(name);
  return place == kNone ? nullptr : &tensors_[place];
}

uint64_t TensorListing::bytes() const {
  uint64_t sum = 0;
  for (const TensorEntry& entry : tensors_) {
    sum = checked_add(sum, entry.end - entry.begin).value_or(UINT64_MAX);
  }
  return sum;
}

}  // namespace mlxcel
