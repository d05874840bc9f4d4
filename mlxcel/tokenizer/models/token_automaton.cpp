#include "mlxcel/tokenizer/models/token_automaton.h"

#include <algorithm>

#include "mlxcel/core/error.h"

namespace mlxcel::tokenizer {

namespace {
constexpr size_t block_size = 256;
constexpr size_t open_blocks = 16;  // in which places are looked for
constexpr size_t max_cells = size_t{1} << 25;
}  // namespace

/// Places states breadth first, so that all shorter ones are known.
class TokenAutomaton::Builder {
 public:
  Builder(TokenAutomaton& automaton, const std::vector<Entry>& entries)
      : automaton_(automaton), entries_(entries) {
    automaton_.cells_.clear();
    automaton_.depths_.clear();
    add_block();
    take(0);
    queue_.push_back({0, 0, entries.size()});
    for (size_t next = 0; next < queue_.size(); ++next) {
      expand(queue_[next]);
    }
  }

 private:
  /// A state and the entries that begin with it.
  struct Range {
    uint32_t state;
    size_t begin;
    size_t end;
  };
  struct Link {
    uint32_t previous;
    uint32_t next;
  };

  unsigned char label(size_t entry, uint32_t depth) const {
    return static_cast<unsigned char>(entries_[entry].text[depth]);
  }

  void expand(Range range) {
    uint32_t depth = automaton_.depths_[range.state];
    size_t begin = range.begin;
    while (begin < range.end && entries_[begin].text.size() == depth) {
      ++begin;
    }
    starts_.clear();
    for (size_t i = begin; i < range.end; ++i) {
      if (i == begin || label(i, depth) != label(i - 1, depth)) {
        starts_.push_back(i);
      }
    }
    if (starts_.empty()) {
      return;
    }
    uint32_t base = find_base(depth);
    automaton_.cells_[range.state].base = base;
    starts_.push_back(range.end);
    for (size_t i = 0; i + 1 < starts_.size(); ++i) {
      uint32_t child = base ^ label(starts_[i], depth);
      take(child);
      enter(range.state, child, starts_[i], depth);
      queue_.push_back({child, starts_[i], starts_[i + 1]});
    }
  }

  void enter(uint32_t parent, uint32_t child, size_t entry, uint32_t depth) {
    Cell& cell = automaton_.cells_[child];
    if (parent != 0) {
      cell.fallback = automaton_.advance(
          automaton_.cells_[parent].fallback, label(entry, depth)
      );
    }
    cell.parent = parent;
    automaton_.depths_[child] = depth + 1;
    cell.output = automaton_.cells_[cell.fallback].output;
    if (entries_[entry].text.size() != depth + 1) {
      return;
    }
    // Equal texts are in the order in which they came.
    while (entry + 1 < entries_.size() &&
           entries_[entry + 1].text == entries_[entry].text) {
      ++entry;
    }
    automaton_.outputs_.push_back(
        {entries_[entry].score, entries_[entry].id, depth + 1, cell.output}
    );
    cell.output = static_cast<uint32_t>(automaton_.outputs_.size() - 1);
  }

  /// A base whose cells for the labels of `starts_` are free.
  uint32_t find_base(uint32_t depth) {
    unsigned char first = label(starts_[0], depth);
    for (uint32_t cell = head_; cell != none; cell = links_[cell].next) {
      uint32_t base = cell ^ first;
      bool fits = std::all_of(starts_.begin(), starts_.end(), [&](size_t i) {
        return free_[base ^ label(i, depth)];
      });
      if (fits) {
        return base;
      }
    }
    auto base = static_cast<uint32_t>(automaton_.cells_.size());
    add_block();
    return base;
  }

  void add_block() {
    size_t begin = automaton_.cells_.size();
    size_t end = begin + block_size;
    if (end > max_cells) {
      fail(ErrorCode::invalid_input, "[tokenizer] the vocabulary is too large");
    }
    automaton_.cells_.resize(end);
    automaton_.depths_.resize(end);
    links_.resize(end);
    free_.resize(end, true);
    for (size_t cell = begin; cell < end; ++cell) {
      append(static_cast<uint32_t>(cell));
    }
    if (begin >= open_blocks * block_size) {
      close(begin - open_blocks * block_size);
    }
  }

  void close(size_t begin) {
    for (size_t cell = begin; cell < begin + block_size; ++cell) {
      if (free_[cell]) {
        take(static_cast<uint32_t>(cell));
      }
    }
  }

  void append(uint32_t cell) {
    links_[cell] = {tail_, none};
    (tail_ == none ? head_ : links_[tail_].next) = cell;
    tail_ = cell;
  }

  void take(uint32_t cell) {
    Link link = links_[cell];
    (link.previous == none ? head_ : links_[link.previous].next) = link.next;
    (link.next == none ? tail_ : links_[link.next].previous) = link.previous;
    free_[cell] = false;
  }

  TokenAutomaton& automaton_;
  const std::vector<Entry>& entries_;
  std::vector<Range> queue_;
  std::vector<size_t> starts_;  // the first entry of each child
  std::vector<Link> links_;     // of free cells in open blocks
  std::vector<bool> free_;
  uint32_t head_ = none;
  uint32_t tail_ = none;
};

namespace {

/// In order of text, equal ones as they came. Most texts differ in their
/// first bytes.
std::vector<TokenAutomaton::Entry> sorted(
    const std::vector<TokenAutomaton::Entry>& entries
) {
  struct Key {
    uint64_t start;  // the first eight bytes
    size_t place;
  };
  std::vector<Key> keys;
  keys.reserve(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    uint64_t start = 0;
    std::string_view text = entries[i].text;
    for (size_t j = 0; j < 8; ++j) {
      uint64_t byte = j < text.size() ? static_cast<unsigned char>(text[j]) : 0;
      start = start << 8 | byte;
    }
    if (!text.empty()) {
      keys.push_back({start, i});
    }
  }
  std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
    if (a.start != b.start) {
      return a.start < b.start;
    }
    int order = entries[a.place].text.compare(entries[b.place].text);
    return order != 0 ? order < 0 : a.place < b.place;
  });
  std::vector<TokenAutomaton::Entry> result;
  result.reserve(keys.size());
  for (const Key& key : keys) {
    result.push_back(entries[key.place]);
  }
  return result;
}

}  // namespace

size_t TokenAutomaton::longest(std::string_view text, MatchEffort& effort)
    const {
  size_t length = 0;
  Beginnings tokens(*this, text, effort);
  while (const Output* token = tokens.next()) {
    length = token->length;
  }
  return length;
}

TokenAutomaton::TokenAutomaton(const std::vector<Entry>& entries) {
  std::vector<Entry> list = sorted(entries);
  Builder(*this, list);
}

}  // namespace mlxcel::tokenizer
