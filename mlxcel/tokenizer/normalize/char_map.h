#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mlxcel::tokenizer {

/// A precompiled character map of sentencepiece: which strings become which
/// others. Layout: the bytes of a double array (uint32), the array, and the
/// replacements, each ended by a NUL (sentencepiece, src/normalizer.cc,
/// DecodePrecompiledCharsMap).
class CharMap {
 public:
  /// Nothing changes.
  CharMap() = default;
  /// Throws Error(invalid_input) naming the file.
  CharMap(std::string_view blob, const std::string& file);

  struct Match {
    size_t length;  // bytes of the text that are replaced; 0: none
    std::string_view replacement;
  };
  /// The longest rule for what `text`, valid UTF-8, begins with.
  Match find(std::string_view text) const;
  /// The shortest rule, which may end inside a character: so the `tokenizers`
  /// library has it.
  Match find_shortest(std::string_view text) const;

 private:
  template <typename Take>
  void search(std::string_view text, Take take) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace mlxcel::tokenizer
