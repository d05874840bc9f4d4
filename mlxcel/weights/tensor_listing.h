#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mlxcel/weights/safetensors.h"

namespace mlxcel {

/// What the headers of a directory's shards say; no tensor is read. Each name
/// is there once, in the order in which it was added first.
class TensorListing {
 public:
  std::vector<std::string> shards;  // full paths, as list_shards()

  void reserve(size_t tensors);
  /// A name that is there already gets the new dtype, shape and place, as
  /// load_weights() does with what a later shard repeats.
  void add(TensorEntry entry);

  const std::vector<TensorEntry>& tensors() const {
    return tensors_;
  }
  /// Position of a name in tensors(); kNone if there is none.
  size_t find(std::string_view name) const;
  /// Null if there is none.
  const TensorEntry* entry(std::string_view name) const;
  /// Names that were added more than once.
  size_t replaced() const {
    return replaced_;
  }
  uint64_t bytes() const;

  static constexpr size_t kNone = SIZE_MAX;

 private:
  // A table of 2^n slots, a third full at most: a checkpoint has up to some
  // hundred thousand names, and nodes on the heap would be four times slower.
  struct Slot {
    uint32_t hash = 0;
    uint32_t place = 0;  // + 1; 0: free
  };
  void rehash(size_t slots);
  Slot* slot_of(std::string_view name, uint32_t hash);

  std::vector<TensorEntry> tensors_;
  std::vector<Slot> slots_;
  size_t replaced_ = 0;
};

}  // namespace mlxcel
