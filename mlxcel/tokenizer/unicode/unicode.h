#pragma once

#include <cstdint>
#include <vector>

#include "mlxcel/tokenizer/unicode/run_table.h"

/// What the official tokenizer library takes a character for. Its parts
/// follow different versions of Unicode: regular expressions 16, lower case
/// and digits 17, punctuation 8, normal forms 11.
namespace mlxcel::unicode {

/// General categories, in the order of the tables.
enum Category : uint8_t {
  Cn,
  Cc,
  Cf,
  Co,
  Lu,
  Ll,
  Lt,
  Lm,
  Lo,
  Mn,
  Mc,
  Me,
  Nd,
  Nl,
  No,
  Pc,
  Pd,
  Ps,
  Pe,
  Pi,
  Pf,
  Po,
  Sm,
  Sc,
  Sk,
  So,
  Zs,
  Zl,
  Zp
};

enum Attribute : uint32_t {
  category_mask = 0x1f,
  onig_word = 1u << 5,  // \w of a Split or Replace pattern
  word = 1u << 6,       // \w of Whitespace and of single_word
  alphabetic = 1u << 7,
  lowercase = 1u << 8,
  uppercase = 1u << 9,
  numeric = 1u << 10,      // Digits
  punctuation = 1u << 11,  // Punctuation
  space = 1u << 12,
  nfc_safe = 1u << 13,  // unchanged and touching no neighbour
  nfd_safe = 1u << 14,
  nfkc_safe = 1u << 15,
  nfkd_safe = 1u << 16,
  keep = 1u << 17,        // younger than the library's decompositions
  class_zero = 1u << 18,  // younger than its combining classes
};
constexpr unsigned script_shift = 20;
constexpr uint32_t script_mask = 0x1f;
enum RemovedAttribute : uint32_t {
  bert_removed = 1u << 25,  // by the clean-up of BertNormalizer
  bert_accent = 1u << 26,   // by its strip_accents
  combining = 1u << 27,     // by StripAccents
};
enum GraphemeAttribute : uint32_t {  // utf8proc doesn't know of these
  young_mark = 1u << 28,             // goes with what is before
  young_prepend = 1u << 29,          // goes with what is behind
  no_prepend = 1u << 30,             // doesn't
};

struct AttributeRun {
  uint32_t first;
  uint32_t attributes;
};
extern const AttributeRun attribute_runs[];
extern const unsigned attribute_run_count;

/// `last - first` is a multiple of `step`; to lower case: add `difference`.
struct LowercaseRun {
  uint32_t first;
  uint32_t last;
  uint32_t step;
  int32_t difference;
};
extern const LowercaseRun lowercase_runs[];
extern const unsigned lowercase_run_count;

/// Scripts as the UnicodeScripts pre-tokenizer tells them apart, by number; 0
/// goes with any neighbour.
extern const RunTable::Run written_script_runs[];
extern const unsigned written_script_run_count;

/// Attributes by code point.
class AttributeTable {
 public:
  AttributeTable();
  uint32_t operator[](char32_t c) const {
    return palette_[cells_[c]];
  }

 private:
  std::vector<uint32_t> palette_;
  RunTable cells_;
};

/// The one table, made at first use.
const AttributeTable& attributes();

/// The one table of written_script_runs, made at first use.
const RunTable& written_scripts();

/// The lower case of `c`, or `c` itself. U+0130 has two characters, of which
/// this is the first and U+0307 the second.
char32_t to_lower(char32_t c);

/// The number of a script in the tables by its name without case, or 0.
unsigned script_number(const char* name);

}  // namespace mlxcel::unicode
