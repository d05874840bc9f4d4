#include "mlxcel/tokenizer/unicode/unicode.h"

#include <strings.h>

#include <algorithm>
#include <map>

namespace mlxcel::unicode {

namespace {

// The order of SCRIPTS in unicode_tables.py.
const char* const script_names[] = {
    "han",      "hiragana", "katakana", "hangul",  "thai",       "latin",
    "greek",    "cyrillic", "arabic",   "hebrew",  "devanagari", "bengali",
    "tamil",    "lao",      "khmer",    "myanmar", "tibetan",    "ethiopic",
    "georgian", "armenian", "bopomofo",
};

/// Replaces attributes by their number in `palette`, which it fills.
RunTable numbered_runs(std::vector<uint32_t>& palette) {
  std::vector<RunTable::Run> runs;
  std::map<uint32_t, uint16_t> numbers;
  for (unsigned i = 0; i < attribute_run_count; ++i) {
    uint32_t value = attribute_runs[i].attributes;
    auto [number, added] =
        numbers.try_emplace(value, static_cast<uint16_t>(palette.size()));
    if (added) {
      palette.push_back(value);
    }
    runs.push_back({attribute_runs[i].first, number->second});
  }
  return RunTable(runs);
}

}  // namespace

AttributeTable::AttributeTable() : cells_(numbered_runs(palette_)) {}

const AttributeTable& attributes() {
  static const AttributeTable table;
  return table;
}

const RunTable& written_scripts() {
  static const RunTable table(
      std::span(written_script_runs, written_script_run_count)
  );
  return table;
}

char32_t to_lower(char32_t c) {
  if (c < 0x80) {
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
  }
  const LowercaseRun* end = lowercase_runs + lowercase_run_count;
  const LowercaseRun* run = std::upper_bound(
      lowercase_runs,
      end,
      c,
      [](char32_t value, const LowercaseRun& r) { return value < r.first; }
  );
  if (c == 0x130) {
    return 'i';
  }
  if (run == lowercase_runs) {
    return c;
  }
  --run;
  if (c > run->last || (c - run->first) % run->step != 0) {
    return c;
  }
  return static_cast<char32_t>(static_cast<int32_t>(c) + run->difference);
}

unsigned script_number(const char* name) {
  for (unsigned i = 0; i < std::size(script_names); ++i) {
    if (strcasecmp(name, script_names[i]) == 0) {
      return i + 1;
    }
  }
  return 0;
}

}  // namespace mlxcel::unicode
