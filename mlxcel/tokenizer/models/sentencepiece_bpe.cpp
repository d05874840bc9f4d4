#include <algorithm>
#include <functional>
#include <unordered_map>

#include "mlxcel/tokenizer/models/hash.h"
#include "mlxcel/tokenizer/models/sentencepiece_model.h"
#include "mlxcel/tokenizer/models/word_cache.h"
#include "mlxcel/tokenizer/models/word_mark.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

constexpr int max_depth = 100;  // of pieces that are taken apart
constexpr uint32_t no_rank = ~0u;

}  // namespace

struct SentencePieceBpe::Work : Model::Scratch {
  /// A part of the text; size 0 once it is merged into the one before.
  struct Symbol {
    uint32_t begin;
    uint32_t size;
    uint32_t previous;
    uint32_t next;
    uint32_t rank;  // of it and the next
    bool whole;     // never merged
  };

  WordCache cache;
  std::vector<Symbol> symbols;
  std::vector<uint64_t> heap;  // (rank, symbol)
  // What unused pieces were made of: the size of the left part.
  std::unordered_map<std::string_view, size_t> parts;
};

SentencePieceBpe::SentencePieceBpe(const SentencePieceFile& file)
    : SentencePieceModel(file) {
  std::vector<float> scores;
  for (const SentencePieceFile::Piece& piece : file.pieces) {
    scores.push_back(piece.score);
    has_unused_ = has_unused_ || piece.type == Type::unused;
  }
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  for (const SentencePieceFile::Piece& piece : file.pieces) {
    auto at = std::lower_bound(
        scores.begin(), scores.end(), piece.score, std::greater<>()
    );
    ranks_.push_back(static_cast<uint32_t>(at - scores.begin()));
  }
  find_cuts(file);
}

/// If no piece holds the mark behind another character, no merge reaches
/// across the two: a text can be cut there, and its words be remembered.
void SentencePieceBpe::find_cuts(const SentencePieceFile& file) {
  cuts_at_mark_ = byte_fallback() && !has_unused_;
  for (size_t id = 0; cuts_at_mark_ && id < file.pieces.size(); ++id) {
    if (!is_text(static_cast<int32_t>(id))) {
      continue;
    }
    std::string_view text = file.pieces[id].text;
    while (text.starts_with(word_mark)) {
      text.remove_prefix(word_mark.size());
    }
    cuts_at_mark_ = text.find(word_mark) == std::string_view::npos;
  }
}

std::unique_ptr<Model::Scratch> SentencePieceBpe::make_scratch() const {
  return std::make_unique<Work>();
}

void SentencePieceBpe::encode(
    std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids
) const {
  if (!cuts_at_mark_) {
    SentencePieceModel::encode(piece, scratch, ids);
    return;
  }
  auto& work = static_cast<Work&>(scratch);
  cut_at_marks(
      piece,
      [](std::string_view before) { return !before.ends_with(word_mark); },
      [&](std::string_view word) { encode_word(word, work, ids); }
  );
}

void SentencePieceBpe::encode_word(
    std::string_view word, Work& work, std::vector<int32_t>& ids
) const {
  uint64_t hash = hash_text(word);
  if (work.cache.find(word, hash, ids)) {
    return;
  }
  size_t start = ids.size();
  SentencePieceModel::encode(word, work, ids);
  work.cache.put(word, hash, ids.data() + start, ids.size() - start);
}

void SentencePieceBpe::encode_piece(
    std::string_view piece, Scratch& scratch, Output& output
) const {
  auto& work = static_cast<Work&>(scratch);
  split(piece, work);
  merge(piece, work);
  for (const Work::Symbol& symbol : work.symbols) {
    if (symbol.size > 0) {
      take_apart(piece.substr(symbol.begin, symbol.size), 0, work, output);
    }
  }
}

/// User-defined pieces, longest first, and characters.
void SentencePieceBpe::split(std::string_view text, Work& work) const {
  work.symbols.clear();
  MatchEffort effort(text);
  for (size_t at = 0; at < text.size();) {
    size_t size = user_defined().longest(text.substr(at), effort);
    bool whole = size > 0;
    if (!whole) {
      size = utf8::length(static_cast<unsigned char>(text[at]));
    }
    auto index = static_cast<uint32_t>(work.symbols.size());
    work.symbols.push_back(
        {static_cast<uint32_t>(at),
         static_cast<uint32_t>(size),
         index - 1,
         index + 1,
         no_rank,
         whole}
    );
    at += size;
  }
}

/// Looks up what a symbol and the next would make.
void SentencePieceBpe::update(uint32_t at, std::string_view text, Work& work)
    const {
  Work::Symbol& left = work.symbols[at];
  left.rank = no_rank;
  if (left.next >= work.symbols.size()) {
    return;
  }
  const Work::Symbol& right = work.symbols[left.next];
  if (left.whole || right.whole) {
    return;
  }
  std::string_view both = text.substr(left.begin, left.size + right.size);
  int32_t id = vocab().find_or_none(both);
  if (id < 0 || !is_text(id)) {
    return;
  }
  left.rank = ranks_[static_cast<size_t>(id)];
  work.heap.push_back(static_cast<uint64_t>(left.rank) << 32 | at);
  if (type(id) == Type::unused) {
    work.parts[both] = left.size;
  }
}

void SentencePieceBpe::merge(std::string_view text, Work& work) const {
  std::vector<Work::Symbol>& symbols = work.symbols;
  std::vector<uint64_t>& heap = work.heap;
  auto count = static_cast<uint32_t>(symbols.size());
  heap.clear();
  work.parts.clear();
  for (uint32_t i = 0; i < count; ++i) {
    update(i, text, work);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  auto push = [&](uint32_t at) {
    size_t before = heap.size();
    update(at, text, work);
    if (heap.size() > before) {
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    uint64_t top = heap.back();
    heap.pop_back();
    auto at = static_cast<uint32_t>(top);
    Work::Symbol& left = symbols[at];
    if (left.size == 0 || left.rank != top >> 32) {
      continue;  // the pair has changed since
    }
    Work::Symbol& right = symbols[left.next];
    left.size += right.size;
    left.next = right.next;
    right.size = 0;
    right.rank = no_rank;
    if (left.next < count) {
      symbols[left.next].previous = at;
    }
    if (at > 0) {
      push(left.previous);
    }
    push(at);
  }
}

void SentencePieceBpe::take_apart(
    std::string_view piece, int depth, const Work& work, Output& output
) const {
  int32_t id = vocab().find_or_none(piece);
  if (id >= 0 && !is_text(id)) {
    id = -1;
  }
  if (id < 0 || type(id) != Type::unused || depth > max_depth) {
    output.add(piece, id);
    return;
  }
  auto at = work.parts.find(piece);
  if (at == work.parts.end()) {
    output.add(piece, -1);
    return;
  }
  take_apart(piece.substr(0, at->second), depth + 1, work, output);
  take_apart(piece.substr(at->second), depth + 1, work, output);
}

}  // namespace mlxcel::tokenizer
