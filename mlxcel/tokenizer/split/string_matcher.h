#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace mlxcel::tokenizer {

/// Finds many strings in a text at once (Aho and Corasick 1975), in linear
/// time: the leftmost match, of those that begin there the longest.
class StringMatcher {
 public:
  struct Match {
    size_t begin;
    size_t end;
    int32_t value;
  };

  /// Before build(). Of equal strings the first counts; an empty one is left
  /// out.
  void add(std::string_view text, int32_t value);
  void build();
  bool empty() const {
    return nodes_.size() == 1;
  }

  /// The next match from `from` on.
  bool find(std::string_view text, size_t from, Match& match) const;

 private:
  static constexpr uint32_t root = 0;
  static constexpr uint32_t dead = ~0u;
  struct Node {
    uint32_t first_child = dead;
    uint32_t sibling = dead;
    uint32_t fail = root;
    int32_t value = -1;   // of the best match that ends here
    uint32_t length = 0;  // of that match
    uint32_t depth = 0;
    unsigned char byte = 0;
  };

  uint32_t child(uint32_t node, unsigned char byte) const;
  void link(uint32_t node, uint32_t parent);

  std::vector<Node> nodes_{1};
  std::array<uint32_t, 256> from_root_{};
};

}  // namespace mlxcel::tokenizer
