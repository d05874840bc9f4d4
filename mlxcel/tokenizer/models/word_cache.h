#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace mlxcel::tokenizer {

/// Remembers the ids of short words. A later word pushes out an earlier one
/// in the same place.
class WordCache {
 public:
  WordCache();

  /// Appends the ids of a word that is known.
  bool find(std::string_view word, uint64_t hash, std::vector<int32_t>& ids)
      const;
  void put(
      std::string_view word, uint64_t hash, const int32_t* ids, size_t count
  );

 private:
  static constexpr size_t slots = 1 << 14;
  static constexpr size_t max_word = 30;
  static constexpr size_t max_ids = 8;
  struct Slot {
    uint8_t size = 0;  // 0: empty
    uint8_t count = 0;
    char word[max_word];
    int32_t ids[max_ids];
  };

  std::unique_ptr<Slot[]> slots_;
};

}  // namespace mlxcel::tokenizer
