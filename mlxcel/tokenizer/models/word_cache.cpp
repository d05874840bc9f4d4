#include "mlxcel/tokenizer/models/word_cache.h"

#include <algorithm>
#include <cstring>

namespace mlxcel::tokenizer {

WordCache::WordCache() : slots_(std::make_unique<Slot[]>(slots)) {}

bool WordCache::find(
    std::string_view word, uint64_t hash, std::vector<int32_t>& ids
) const {
  const Slot& slot = slots_[hash & (slots - 1)];
  if (word.empty() || slot.size != word.size() ||
      std::memcmp(slot.word, word.data(), word.size()) != 0) {
    return false;
  }
  ids.insert(ids.end(), slot.ids, slot.ids + slot.count);
  return true;
}

void WordCache::put(
    std::string_view word, uint64_t hash, const int32_t* ids, size_t count
) {
  if (word.empty() || word.size() > max_word || count > max_ids) {
    return;
  }
  Slot& slot = slots_[hash & (slots - 1)];
  slot.size = static_cast<uint8_t>(word.size());
  slot.count = static_cast<uint8_t>(count);
  std::copy(word.begin(), word.end(), slot.word);
  std::copy(ids, ids + count, slot.ids);
}

}  // namespace mlxcel::tokenizer
