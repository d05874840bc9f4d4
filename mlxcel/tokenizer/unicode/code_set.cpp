#include "mlxcel/tokenizer/unicode/code_set.h"

#include <algorithm>

#include "mlxcel/tokenizer/unicode/unicode.h"

namespace mlxcel::tokenizer {

namespace {

template <typename Test>
CodeSet select(Test test) {
  CodeSet set;
  for (unsigned i = 0; i < unicode::attribute_run_count; ++i) {
    const unicode::AttributeRun& run = unicode::attribute_runs[i];
    if (test(run.attributes)) {
      uint32_t end = i + 1 < unicode::attribute_run_count
                         ? unicode::attribute_runs[i + 1].first
                         : CodeSet::max_code_point + 1;
      set.add(run.first, end - 1);
    }
  }
  return set;
}

}  // namespace

CodeSet CodeSet::of(uint32_t first, uint32_t last) {
  CodeSet set;
  set.add(first, last);
  return set;
}

CodeSet CodeSet::with_attributes(uint32_t any) {
  return select([any](uint32_t a) { return (a & any) != 0; });
}

CodeSet CodeSet::with_categories(uint32_t mask) {
  return select([mask](uint32_t a) {
    return (mask >> (a & unicode::category_mask) & 1) != 0;
  });
}

CodeSet CodeSet::with_script(unsigned number) {
  return select([number](uint32_t a) {
    return (a >> unicode::script_shift & unicode::script_mask) == number;
  });
}

void CodeSet::add(uint32_t first, uint32_t last) {
  if (ranges_.empty() || first > ranges_.back().last + 1) {
    ranges_.push_back({first, last});
    return;
  }
  auto touching = std::lower_bound(
      ranges_.begin(),
      ranges_.end(),
      first,
      [](const Range& r, uint32_t c) { return r.last + 1 < c; }
  );
  if (last + 1 < touching->first) {
    ranges_.insert(touching, {first, last});
    return;
  }
  touching->first = std::min(touching->first, first);
  auto next = touching + 1;
  while (next != ranges_.end() && next->first <= last + 1) {
    last = std::max(last, next->last);
    ++next;
  }
  touching->last = std::max(touching->last, last);
  ranges_.erase(touching + 1, next);
}

void CodeSet::add(const CodeSet& other) {
  for (const Range& range : other.ranges_) {
    add(range.first, range.last);
  }
}

CodeSet CodeSet::complement() const {
  CodeSet result;
  uint32_t next = 0;
  for (const Range& range : ranges_) {
    if (range.first > next) {
      result.ranges_.push_back({next, range.first - 1});
    }
    next = range.last + 1;
  }
  if (next <= max_code_point) {
    result.ranges_.push_back({next, max_code_point});
  }
  return result;
}

CodeSet CodeSet::intersection(const CodeSet& other) const {
  CodeSet either = complement();
  either.add(other.complement());
  return either.complement();
}

bool CodeSet::contains(uint32_t c) const {
  auto at = std::lower_bound(
      ranges_.begin(),
      ranges_.end(),
      c,
      [](const Range& r, uint32_t value) { return r.last < value; }
  );
  return at != ranges_.end() && at->first <= c;
}

}  // namespace mlxcel::tokenizer
