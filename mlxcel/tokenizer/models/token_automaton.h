#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "mlxcel/tokenizer/models/match_effort.h"

namespace mlxcel::tokenizer {

/// Finds all tokens in a text in one pass (Aho and Corasick 1975), on a double
/// array (Aoe 1989) whose cells are reached by exclusive or.
class TokenAutomaton {
 public:
  static constexpr uint32_t none = ~0u;
  static constexpr uint32_t start = 0;

  struct Entry {
    std::string_view text;  // empty: left out
    double score;
    int32_t id;
  };
  /// A token that ends where it is found.
  struct Output {
    double score;
    int32_t id;
    uint32_t length;  // bytes
    uint32_t next;    // the next shorter one that ends here too, or none
  };

  TokenAutomaton() = default;
  /// Of equal texts the last counts. Throws Error(invalid_input) where the
  /// tokens have more than 32 million different beginnings.
  explicit TokenAutomaton(const std::vector<Entry>& entries);

  /// The state behind a byte.
  uint32_t advance(uint32_t state, unsigned char byte) const {
    for (;;) {
      uint32_t next = cells_[state].base ^ byte;
      if (cells_[next].parent == state) {
        return next;
      }
      if (state == start) {
        return start;
      }
      state = cells_[state].fallback;
    }
  }
  /// The length of the longest token that `text` begins with, or 0.
  size_t longest(std::string_view text, MatchEffort& effort) const;
  /// The longest token that ends in a state, or none.
  uint32_t first_output(uint32_t state) const {
    return cells_[state].output;
  }
  const Output& output(uint32_t index) const {
    return outputs_[index];
  }
  /// How many bytes before a state still matter.
  uint32_t depth(uint32_t state) const {
    return depths_[state];
  }

  /// The tokens that a text begins with, from the shortest.
  class Beginnings {
   public:
    Beginnings(
        const TokenAutomaton& automaton,
        std::string_view text,
        MatchEffort& effort
    )
        : automaton_(automaton), text_(text), effort_(effort) {}
    /// Null after the longest.
    const Output* next() {
      while (at_ < text_.size()) {
        auto byte = static_cast<unsigned char>(text_[at_]);
        state_ = automaton_.child(state_, byte);
        if (state_ == none) {
          at_ = text_.size();
          break;
        }
        effort_.spend();
        ++at_;
        if (const Output* token = automaton_.whole(state_)) {
          return token;
        }
      }
      return nullptr;
    }

   private:
    const TokenAutomaton& automaton_;
    std::string_view text_;
    MatchEffort& effort_;
    size_t at_ = 0;
    uint32_t state_ = start;
  };

 private:
  class Builder;

  /// The state behind a byte for a text that is a beginning of a token, or
  /// none.
  uint32_t child(uint32_t state, unsigned char byte) const {
    uint32_t next = cells_[state].base ^ byte;
    return cells_[next].parent == state ? next : none;
  }
  /// The token that is all of the text that `child` went through to a state,
  /// or null.
  const Output* whole(uint32_t state) const {
    uint32_t output = cells_[state].output;
    return output != none && outputs_[output].length == depths_[state]
               ? &outputs_[output]
               : nullptr;
  }
  struct Cell {
    uint32_t base = 0;  // without children no cell has this one as parent
    uint32_t parent = none;
    uint32_t fallback = 0;  // the state of the longest proper suffix
    uint32_t output = none;
  };

  std::vector<Cell> cells_ = std::vector<Cell>(256);
  std::vector<uint32_t> depths_ = std::vector<uint32_t>(256);
  std::vector<Output> outputs_;
};

}  // namespace mlxcel::tokenizer
