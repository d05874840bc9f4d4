#include "mlxcel/tokenizer/models/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "mlxcel/core/error.h"
#include "mlxcel/tokenizer/models/word_cache.h"
#include "mlxcel/tokenizer/models/word_mark.h"
#include "mlxcel/tokenizer/split/byte_level.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

constexpr size_t short_word = 48;  // symbols; quadratic, but fast
constexpr size_t max_joined = 16;
constexpr uint32_t no_rank = MergeTable::none;

}  // namespace

struct Bpe::Work : Model::Scratch {
  WordCache cache;
  std::string spelling;
  std::vector<int32_t> symbols;
  std::vector<uint32_t> ranks;  // of each symbol with the next
  std::vector<uint32_t> previous;
  std::vector<uint32_t> next;
  std::vector<uint64_t> heap;
};

Bpe::Bpe(
    Vocab tokens,
    const std::vector<MergeTable::Merge>& merges,
    BpeOptions options
)
    : Model(std::move(tokens)),
      options_(std::move(options)),
      merges_(merges, options_.rank_by_result),
      byte_fallback_(vocab().byte_tokens()),
      decorates_(
          !options_.continuing_subword_prefix.empty() ||
          !options_.end_of_word_suffix.empty()
      ) {
  for (unsigned b = 0; b < 256; ++b) {
    std::string character;
    utf8::append(character, byte_character(static_cast<unsigned char>(b)));
    byte_symbols_[b] = vocab().find_or_none(character);
  }
  find_cuts(merges);
}

/// If no token holds the mark behind another character, no merge reaches
/// across the two: a text can be cut there, and its words be remembered. Only
/// where no character can be unknown, since those may be fused or dropped.
void Bpe::find_cuts(const std::vector<MergeTable::Merge>& merges) {
  cuts_at_mark_ =
      options_.byte_fallback && !options_.ignore_merges &&
      !options_.reads_bytes && !decorates_ &&
      std::count(byte_fallback_.begin(), byte_fallback_.end(), -1) == 0;
  if (!cuts_at_mark_) {
    return;
  }
  // The text of a byte token is not what it stands for.
  std::vector<bool> is_byte(vocab().id_limit());
  for (int32_t id : byte_fallback_) {
    is_byte[static_cast<size_t>(id)] = true;
  }
  for (const MergeTable::Merge& merge : merges) {
    if (is_byte[static_cast<size_t>(merge.left)] ||
        is_byte[static_cast<size_t>(merge.right)]) {
      cuts_at_mark_ = false;
      return;
    }
  }
  for (size_t id = 0; cuts_at_mark_ && id < vocab().id_limit(); ++id) {
    if (!vocab().has(static_cast<int32_t>(id))) {
      continue;
    }
    std::string_view token = vocab().token(static_cast<int32_t>(id));
    for (size_t at = token.find(word_mark, 1); at != std::string_view::npos;
         at = token.find(word_mark, at + 1)) {
      if (cut_before_mark(token.substr(0, at))) {
        const char* p = token.data() + utf8::last_begin(token.substr(0, at));
        joined_to_mark_.push_back(utf8::next(p));
      }
    }
    cuts_at_mark_ = joined_to_mark_.size() <= max_joined;
  }
}

bool Bpe::cut_before_mark(std::string_view before) const {
  if (before.ends_with(word_mark)) {
    return false;
  }
  if (joined_to_mark_.empty()) {
    return true;
  }
  const char* p = before.data() + utf8::last_begin(before);
  return std::find(
             joined_to_mark_.begin(), joined_to_mark_.end(), utf8::next(p)
         ) == joined_to_mark_.end();
}

std::unique_ptr<Model::Scratch> Bpe::make_scratch() const {
  return std::make_unique<Work>();
}

void Bpe::encode(
    std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids
) const {
  auto& work = static_cast<Work&>(scratch);
  if (!cuts_at_mark_) {
    encode_word(piece, work, ids);
    return;
  }
  cut_at_marks(
      piece,
      [this](std::string_view before) { return cut_before_mark(before); },
      [&](std::string_view word) { encode_word(word, work, ids); }
  );
}

void Bpe::encode_word(
    std::string_view word, Work& work, std::vector<int32_t>& ids
) const {
  uint64_t hash = hash_text(word);
  if (work.cache.find(word, hash, ids)) {
    return;
  }
  size_t start = ids.size();
  int32_t whole = find_whole(word, work);
  if (whole >= 0) {
    ids.push_back(whole);
  } else {
    work.symbols.clear();
    if (!options_.reads_bytes) {
      symbols_of_characters(word, work, nullptr);
    } else if (!symbols_of_bytes(word, work)) {
      std::string spelling;
      append_byte_level(spelling, word);
      symbols_of_characters(spelling, work, nullptr);
    }
    if (work.symbols.size() > short_word) {
      merge_in_place(work.symbols, work);
      std::erase(work.symbols, -1);
    } else {
      merge_short(work.symbols, work);
    }
    ids.insert(ids.end(), work.symbols.begin(), work.symbols.end());
  }
  work.cache.put(word, hash, ids.data() + start, ids.size() - start);
}

/// The id of a word that no merge may touch, or -1.
int32_t Bpe::find_whole(std::string_view word, Work& work) const {
  if (!options_.ignore_merges) {
    return -1;
  }
  if (!options_.reads_bytes) {
    return vocab().find_or_none(word);
  }
  work.spelling.clear();
  append_byte_level(work.spelling, word);
  return vocab().find_or_none(work.spelling);
}

/// What the official library counts: the bytes of each symbol one behind the
/// other, as if no character had been dropped.
void Bpe::encode_tokens(
    std::string_view piece, Scratch& scratch, std::vector<Token>& tokens
) const {
  auto& work = static_cast<Work&>(scratch);
  int32_t whole = find_whole(piece, work);
  if (whole >= 0) {
    tokens.push_back({whole, 0, piece.size()});
    return;
  }
  work.symbols.clear();
  Lengths lengths;
  std::vector<size_t> sources;  // of the bytes of a spelling
  if (!options_.reads_bytes) {
    symbols_of_characters(piece, work, &lengths);
  } else if (symbols_of_bytes(piece, work)) {
    lengths.assign(piece.size(), 1);
  } else {
    std::string spelling;
    for (size_t i = 0; i < piece.size(); ++i) {
      append_byte_level(spelling, piece.substr(i, 1));
      sources.resize(spelling.size(), i);
    }
    symbols_of_characters(spelling, work, &lengths);
  }
  merge_in_place(work.symbols, work);
  size_t begin = 0;
  for (size_t i = 0; i < work.symbols.size();) {
    int32_t id = work.symbols[i];
    size_t end = begin + lengths[i];
    while (++i < work.symbols.size() && work.symbols[i] < 0) {
      end += lengths[i];
    }
    if (sources.empty()) {
      tokens.push_back({id, begin, end});
    } else {
      tokens.push_back({id, sources[begin], sources[end - 1] + 1});
    }
    begin = end;
  }
}

/// False where a byte has no symbol or symbols are decorated.
bool Bpe::symbols_of_bytes(std::string_view word, Work& work) const {
  if (decorates_) {
    return false;
  }
  for (char c : word) {
    int32_t symbol = byte_symbols_[static_cast<unsigned char>(c)];
    if (symbol < 0) {
      work.symbols.clear();
      return false;
    }
    work.symbols.push_back(symbol);
  }
  return true;
}

void Bpe::symbols_of_characters(
    std::string_view word, Work& work, Lengths* lengths
) const {
  // An unknown token waits for the next known character. Byte tokens do not
  // wait for it, so they come before it: official.
  int32_t waiting = -1;
  uint32_t waiting_length = 0;
  auto put = [&](int32_t id, size_t length) {
    work.symbols.push_back(id);
    if (lengths != nullptr) {
      lengths->push_back(static_cast<uint32_t>(length));
    }
  };
  std::string decorated;
  for (size_t at = 0; at < word.size();) {
    size_t size = utf8::length(static_cast<unsigned char>(word[at]));
    std::string_view character = word.substr(at, size);
    if (decorates_) {
      decorated = at == 0 ? "" : options_.continuing_subword_prefix;
      decorated += character;
      if (at + size == word.size()) {
        decorated += options_.end_of_word_suffix;
      }
      character = decorated;
    }
    at += size;
    int32_t id = vocab().find_or_none(character);
    if (id < 0 && add_byte_tokens(character, work)) {
      if (lengths != nullptr) {
        lengths->resize(work.symbols.size(), 1);
      }
      continue;
    }
    if (id < 0 && !options_.unk_token) {
      continue;
    }
    bool fuse = id < 0 && options_.fuse_unk && waiting >= 0;
    if (waiting >= 0 && !fuse) {
      put(waiting, waiting_length);
      waiting = -1;
      waiting_length = 0;
    }
    if (id >= 0) {
      put(id, size);
      continue;
    }
    waiting = fuse ? waiting : unk_id();
    waiting_length += static_cast<uint32_t>(size);
  }
  if (waiting >= 0) {
    put(waiting, waiting_length);
  }
}

int32_t Bpe::unk_id() const {
  int32_t id = vocab().find_or_none(*options_.unk_token);
  if (id < 0) {
    fail(
        ErrorCode::invalid_input,
        fmt::format(
            "[tokenizer] model.unk_token: {} is not in the vocabulary",
            quote(*options_.unk_token)
        )
    );
  }
  return id;
}

/// All bytes of a character, or nothing.
bool Bpe::add_byte_tokens(std::string_view character, Work& work) const {
  if (!options_.byte_fallback) {
    return false;
  }
  auto token = [this](char c) {
    return byte_fallback_[static_cast<unsigned char>(c)];
  };
  for (char c : character) {
    if (token(c) < 0) {
      return false;
    }
  }
  for (char c : character) {
    work.symbols.push_back(token(c));
  }
  return true;
}

void Bpe::merge_short(std::vector<int32_t>& symbols, Work& work) const {
  size_t count = symbols.size();
  std::vector<uint32_t>& ranks = work.ranks;
  ranks.resize(count);
  for (size_t i = 0; i + 1 < count; ++i) {
    ranks[i] = merges_.rank(symbols[i], symbols[i + 1]);
  }
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      best = ranks[i] < ranks[best] ? i : best;
    }
    if (ranks[best] == no_rank) {
      break;
    }
    symbols[best] = merges_.merged(ranks[best]);
    --count;
    for (size_t i = best + 1; i < count; ++i) {
      symbols[i] = symbols[i + 1];
      ranks[i] = ranks[i + 1];
    }
    if (best + 1 < count) {
      ranks[best] = merges_.rank(symbols[best], symbols[best + 1]);
    }
    if (best > 0) {
      ranks[best - 1] = merges_.rank(symbols[best - 1], symbols[best]);
    }
  }
  symbols.resize(count);
}

/// The same with a linked list and a heap of (rank, position). Entries whose
/// pair has changed since are passed over. A merged symbol stands where its
/// first part was; -1 stands for the others.
void Bpe::merge_in_place(std::vector<int32_t>& symbols, Work& work) const {
  auto count = static_cast<uint32_t>(symbols.size());
  std::vector<uint32_t>& ranks = work.ranks;
  std::vector<uint32_t>& previous = work.previous;
  std::vector<uint32_t>& next = work.next;
  std::vector<uint64_t>& heap = work.heap;
  ranks.assign(count, no_rank);
  previous.resize(count);
  next.resize(count);
  heap.clear();
  auto entry = [&](uint32_t at) {
    return static_cast<uint64_t>(ranks[at]) << 32 | at;
  };
  for (uint32_t i = 0; i < count; ++i) {
    previous[i] = i - 1;
    next[i] = i + 1;
    if (i + 1 < count) {
      ranks[i] = merges_.rank(symbols[i], symbols[i + 1]);
    }
    if (ranks[i] != no_rank) {
      heap.push_back(entry(i));
    }
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  auto update = [&](uint32_t at) {
    ranks[at] = next[at] < count ? merges_.rank(symbols[at], symbols[next[at]])
                                 : no_rank;
    if (ranks[at] != no_rank) {
      heap.push_back(entry(at));
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    uint64_t top = heap.back();
    heap.pop_back();
    auto at = static_cast<uint32_t>(top);
    if (ranks[at] != top >> 32) {
      continue;
    }
    uint32_t gone = next[at];
    symbols[at] = merges_.merged(ranks[at]);
    symbols[gone] = -1;
    ranks[gone] = no_rank;
    next[at] = next[gone];
    if (next[at] < count) {
      previous[next[at]] = at;
    }
    update(at);
    if (at > 0) {
      update(previous[at]);
    }
  }
}

}  // namespace mlxcel::tokenizer
