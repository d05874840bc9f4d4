#include "mlxcel/tokenizer/models/prefix_trie.h"

#include "mlxcel/core/error.h"

namespace mlxcel::tokenizer {

namespace {
constexpr size_t max_nodes = 1 << 24;
constexpr size_t first_slots = 64;
}  // namespace

PrefixTrie::PrefixTrie()
    : slots_(first_slots), mask_(first_slots - 1), values_{-1} {}

void PrefixTrie::add(std::string_view text, int32_t value) {
  uint32_t node = root;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    uint32_t next = child(node, byte);
    if (next == none) {
      if (values_.size() == max_nodes) {
        fail(ErrorCode::unsupported, "[tokenizer] the vocabulary is too large");
      }
      next = static_cast<uint32_t>(values_.size());
      values_.push_back(-1);
      insert({node, byte, next});
    }
    node = next;
  }
  values_[node] = value;
}

void PrefixTrie::insert(const Slot& slot) {
  if (values_.size() * 3 / 2 > slots_.size()) {
    grow();
  }
  uint64_t at = hash_pair(slot.node, slot.byte) & mask_;
  while (slots_[at].child != none) {
    at = (at + 1) & mask_;
  }
  slots_[at] = slot;
}

void PrefixTrie::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  mask_ = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.child != none) {
      uint64_t at = hash_pair(slot.node, slot.byte) & mask_;
      while (slots_[at].child != none) {
        at = (at + 1) & mask_;
      }
      slots_[at] = slot;
    }
  }
}

size_t PrefixTrie::longest(std::string_view text) const {
  size_t length = 0;
  uint32_t node = root;
  for (size_t i = 0; i < text.size(); ++i) {
    node = child(node, static_cast<unsigned char>(text[i]));
    if (node == none) {
      break;
    }
    if (values_[node] >= 0) {
      length = i + 1;
    }
  }
  return length;
}

}  // namespace mlxcel::tokenizer
