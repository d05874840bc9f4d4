#include "mlxcel/tokenizer/models/vocab.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "mlxcel/core/error.h"
#include "mlxcel/tokenizer/models/hash.h"

namespace mlxcel::tokenizer {

void Vocab::reserve(size_t count) {
  additions_.reserve(count);
  pool_.reserve(count * 8);
}

void Vocab::add(std::string_view token, int32_t id) {
  additions_.push_back(
      {static_cast<uint32_t>(pool_.size()),
       static_cast<uint32_t>(token.size()),
       id}
  );
  pool_ += token;
}

void Vocab::build(Repeated repeated) {
  if (pool_.size() >= no_token) {
    fail(ErrorCode::invalid_input, "[tokenizer] the vocabulary is too large");
  }
  int32_t highest = -1;
  for (const Addition& addition : additions_) {
    highest = std::max(highest, addition.id);
  }
  entries_.resize(static_cast<size_t>(highest) + 1);
  slots_.assign(std::bit_ceil(additions_.size() * 3 / 2 + 1), Slot{});
  mask_ = slots_.size() - 1;
  for (const Addition& addition : additions_) {
    insert(addition, repeated);
  }
  additions_ = {};
  pool_.shrink_to_fit();
}

void Vocab::insert(const Addition& addition, Repeated repeated) {
  std::string_view token(pool_.data() + addition.offset, addition.size);
  uint64_t hash = hash_text(token);
  auto tag = static_cast<uint32_t>(hash >> 32);
  uint64_t at = hash & mask_;
  while (slots_[at].id >= 0) {
    const Slot& slot = slots_[at];
    if (slot.hash == tag && this->token(slot.id) == token) {
      if (repeated == Repeated::dropped) {
        entries_[static_cast<size_t>(slot.id)] = Entry{};
        --count_;
      }
      break;
    }
    at = (at + 1) & mask_;
  }
  Entry& entry = entries_[static_cast<size_t>(addition.id)];
  if (entry.offset != no_token) {
    fail(
        ErrorCode::invalid_input,
        fmt::format(
            "[tokenizer] id {} is given to both {} and {}",
            addition.id,
            quote(this->token(addition.id)),
            quote(token)
        )
    );
  }
  slots_[at] = {tag, addition.id};
  entry = {addition.offset, addition.size};
  ++count_;
}

int32_t Vocab::find_or_none(std::string_view token) const {
  return find_hashed(token, hash_text(token));
}

int32_t Vocab::find_hashed(std::string_view token, uint64_t hash) const {
  auto tag = static_cast<uint32_t>(hash >> 32);
  for (uint64_t at = hash & mask_;; at = (at + 1) & mask_) {
    const Slot& slot = slots_[at];
    if (slot.id < 0) {
      return -1;
    }
    if (slot.hash == tag && this->token(slot.id) == token) {
      return slot.id;
    }
  }
}

/// The time goes into waiting for memory, three times a token: so many are
/// under way at once.
void Vocab::find_many(
    const std::string_view* tokens, int32_t* ids, size_t count
) const {
  constexpr size_t block = 32;
  std::array<uint64_t, block> hashes;
  for (size_t start = 0; start < count; start += block) {
    size_t size = std::min(block, count - start);
    for (size_t i = 0; i < size; ++i) {
      hashes[i] = hash_text(tokens[start + i]);
      __builtin_prefetch(&slots_[hashes[i] & mask_]);
    }
    for (size_t i = 0; i < size; ++i) {
      int32_t id = std::max(slots_[hashes[i] & mask_].id, 0);
      ids[start + i] = id;
      __builtin_prefetch(entries_.data() + id);
    }
    for (size_t i = 0; i < size; ++i) {
      auto id = static_cast<size_t>(ids[start + i]);
      if (id < entries_.size() && entries_[id].offset != no_token) {
        __builtin_prefetch(pool_.data() + entries_[id].offset);
      }
    }
    for (size_t i = 0; i < size; ++i) {
      ids[start + i] = find_hashed(tokens[start + i], hashes[i]);
    }
  }
}

std::array<int32_t, 256> Vocab::byte_tokens() const {
  std::array<int32_t, 256> ids{};
  for (unsigned b = 0; b < ids.size(); ++b) {
    ids[b] = find_or_none(fmt::format("<0x{:02X}>", b));
  }
  return ids;
}

}  // namespace mlxcel::tokenizer
