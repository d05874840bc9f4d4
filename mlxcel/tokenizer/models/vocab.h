#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mlxcel::tokenizer {

/// The tokens of a model, both ways. Ids may leave gaps.
class Vocab {
 public:
  static constexpr int32_t max_id = (1 << 22) - 1;

  /// Makes room for `count` tokens.
  void reserve(size_t count);
  /// Before build(). `id` is 0 to max_id.
  void add(std::string_view token, int32_t id);
  /// A token that is given twice is found under its last id.
  enum class Repeated {
    dropped,  // the earlier ids have no token: a JSON object
    kept      // they have it, and each counts: a list
  };
  /// Makes tokens findable. Throws Error(invalid_input) naming two tokens
  /// that share an id, or more text than 4 GB.
  void build(Repeated repeated = Repeated::dropped);

  std::optional<int32_t> find(std::string_view token) const {
    int32_t id = find_or_none(token);
    return id < 0 ? std::nullopt : std::optional(id);
  }
  /// The id or -1.
  int32_t find_or_none(std::string_view token) const;
  /// The same for `count` tokens, faster than one by one.
  void find_many(const std::string_view* tokens, int32_t* ids, size_t count)
      const;

  /// The ids of <0x00> to <0xFF>, -1 where there is none.
  std::array<int32_t, 256> byte_tokens() const;

  /// The token of an id that has one.
  std::string_view token(int32_t id) const {
    const Entry& entry = entries_[static_cast<size_t>(id)];
    return {pool_.data() + entry.offset, entry.size};
  }
  bool has(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < entries_.size() &&
           entries_[static_cast<size_t>(id)].offset != no_token;
  }
  /// Number of ids that have a token.
  size_t count() const {
    return count_;
  }
  /// Highest id + 1.
  size_t id_limit() const {
    return entries_.size();
  }

 private:
  static constexpr uint32_t no_token = ~0u;
  struct Entry {
    uint32_t offset = no_token;
    uint32_t size = 0;
  };
  struct Addition {
    uint32_t offset;
    uint32_t size;
    int32_t id;
  };
  struct Slot {
    uint32_t hash = 0;
    int32_t id = -1;
  };

  int32_t find_hashed(std::string_view token, uint64_t hash) const;
  void insert(const Addition& addition, Repeated repeated);

  std::string pool_;
  std::vector<Addition> additions_;  // until build()
  std::vector<Entry> entries_;       // by id
  std::vector<Slot> slots_{1};       // open addressing, a power of two
  uint64_t mask_ = 0;
  size_t count_ = 0;
};

}  // namespace mlxcel::tokenizer
