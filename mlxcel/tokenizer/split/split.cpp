#include "mlxcel/tokenizer/split/split.h"

#include "mlxcel/tokenizer/unicode/unicode.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

SplitBehavior parse_split_behavior(const Json& json) {
  const std::string& name = json.as_string();
  if (name == "Removed") {
    return SplitBehavior::removed;
  }
  if (name == "Isolated") {
    return SplitBehavior::isolated;
  }
  if (name == "MergedWithPrevious") {
    return SplitBehavior::merged_with_previous;
  }
  if (name == "MergedWithNext") {
    return SplitBehavior::merged_with_next;
  }
  if (name == "Contiguous") {
    return SplitBehavior::contiguous;
  }
  json.reject("expected a split behavior, got " + json.preview());
}

void SplitCollector::emit(size_t begin, size_t end) {
  sink_.take({whole_.text, whole_.begin + begin, whole_.begin + end});
}

void SplitCollector::add(size_t begin, size_t end, bool delimiter) {
  switch (behavior_) {
    case SplitBehavior::removed:
      if (!delimiter) {
        emit(begin, end);
      }
      break;
    case SplitBehavior::isolated:
      emit(begin, end);
      break;
    case SplitBehavior::merged_with_previous:
      join(begin, end, delimiter, delimiter && !previous_);
      break;
    case SplitBehavior::merged_with_next:
      join(begin, end, delimiter, !delimiter && previous_);
      break;
    case SplitBehavior::contiguous:
      join(begin, end, delimiter, delimiter == previous_);
      break;
  }
}

void SplitCollector::join(
    size_t begin, size_t end, bool delimiter, bool joined
) {
  if (!pending_ || !joined) {
    if (pending_) {
      emit(begin_, end_);
    }
    begin_ = begin;
  }
  end_ = end;
  pending_ = true;
  previous_ = delimiter;
}

void SplitCollector::finish() {
  if (pending_) {
    emit(begin_, end_);
    pending_ = false;
  }
}

void split_by_pattern(
    const Piece& piece,
    const Regex& pattern,
    SplitBehavior behavior,
    bool invert,
    PieceSink& sink
) {
  std::string_view text = piece.view();
  SplitCollector collector(piece, behavior, sink);
  RegexScan scan(pattern, text);
  Regex::Match match{};
  size_t done = 0;
  while (scan.next(match)) {
    if (match.begin != done) {
      collector.add(done, match.begin, invert);
    }
    collector.add(match.begin, match.end, !invert);
    done = match.end;
  }
  if (done != text.size()) {
    collector.add(done, text.size(), invert);
  }
  collector.finish();
}

void split_by_attribute(
    const Piece& piece,
    uint32_t attribute,
    SplitBehavior behavior,
    PieceSink& sink
) {
  std::string_view text = piece.view();
  const unicode::AttributeTable& table = unicode::attributes();
  SplitCollector collector(piece, behavior, sink);
  const char* p = text.data();
  size_t done = 0;
  while (p != text.data() + text.size()) {
    auto begin = static_cast<size_t>(p - text.data());
    if ((table[utf8::next(p)] & attribute) == 0) {
      continue;
    }
    auto end = static_cast<size_t>(p - text.data());
    if (begin != done) {
      collector.add(done, begin, false);
    }
    collector.add(begin, end, true);
    done = end;
  }
  if (done != text.size()) {
    collector.add(done, text.size(), false);
  }
  collector.finish();
}

}  // namespace mlxcel::tokenizer
