#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace mlxcel {

class Tokenizer;

/// Turns generated ids into text as they come. Text is given as soon as it is
/// certain: never half a character, nor U+FFFD for bytes still to come. What
/// all calls give together is what decoding the prompt and the ids at once
/// gives behind the prompt; only where byte-fallback tokens turn out to be no
/// UTF-8, characters that came before in their run remain.
class StreamingDetokenizer {
 public:
  /// `prompt`: the ids that come before, which give no text of their own.
  /// The tokenizer must outlive this.
  StreamingDetokenizer(
      const Tokenizer& tokenizer,
      std::span<const int32_t> prompt,
      bool skip_special = true
  );
  ~StreamingDetokenizer();
  StreamingDetokenizer(StreamingDetokenizer&&) noexcept;
  StreamingDetokenizer& operator=(StreamingDetokenizer&&) noexcept;

  /// The text that the id completes, often one word, possibly none. An id
  /// without a token gives none.
  std::string push(int32_t id);
  /// What was kept back. Nothing may be pushed afterwards.
  std::string flush();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mlxcel
