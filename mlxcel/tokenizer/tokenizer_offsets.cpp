#include <algorithm>

#include "mlxcel/tokenizer/tokenizer_impl.h"
#include "mlxcel/tokenizer/unicode/unicode.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel {

namespace {

using tokenizer::Model;
using tokenizer::Piece;
using tokenizer::TextToken;
using tokenizer::Token;

/// A space, or what stands for one in the byte-level alphabet.
bool is_space(char32_t c) {
  return c == 0x120 || (unicode::attributes()[c] & unicode::space) != 0;
}

uint32_t count_leading_spaces(std::string_view text) {
  uint32_t count = 0;
  const char* p = text.data();
  while (p != text.data() + text.size() && is_space(utf8::next(p))) {
    ++count;
  }
  return count;
}

uint32_t count_trailing_spaces(std::string_view text) {
  uint32_t count = 0;
  while (!text.empty()) {
    size_t last = utf8::last_begin(text);
    const char* p = text.data() + last;
    if (!is_space(utf8::next(p))) {
      break;
    }
    ++count;
    text = text.substr(0, last);
  }
  return count;
}

}  // namespace

/// Collects tokens with their place in the text.
class Tokenizer::Impl::Tokens : public Consumer {
 public:
  Tokens(const Impl& owner, Model::Scratch& scratch)
      : model_(*owner.parts.model),
        trims_(owner.parts.post_processor.trims()),
        scratch_(scratch) {}

  void take(const Piece& piece) override {
    tokens_.clear();
    model_.encode_tokens(piece.view(), scratch_, tokens_);
    for (const Token& token : tokens_) {
      put(token.id, spelling(token, piece), bytes_of(token, piece));
    }
  }
  void take_added(int32_t id, std::string_view spelling, const ByteRange& bytes)
      override {
    put(id, spelling, bytes);
  }

  std::vector<TextToken> result;

 private:
  /// Counted beyond the piece (a decorated character in bytes), a token keeps
  /// its place in the piece: official.
  static ByteRange bytes_of(const Token& token, const Piece& piece) {
    if (token.end > piece.size()) {
      return {token.begin, token.end};
    }
    return {
        piece.text->origin(piece.begin + token.begin).begin,
        piece.text->origin(piece.begin + token.end - 1).end};
  }

  std::string_view spelling(const Token& token, const Piece& piece) const {
    return model_.spells_by_text(token.id)
               ? piece.view().substr(token.begin, token.end - token.begin)
               : model_.vocab().token(token.id);
  }

  void put(int32_t id, std::string_view spelling, const ByteRange& bytes) {
    result.push_back({id, bytes, 0, 0});
    if (trims_) {
      result.back().leading_spaces = count_leading_spaces(spelling);
      result.back().trailing_spaces = count_trailing_spaces(spelling);
    }
  }

  const Model& model_;
  bool trims_;
  Model::Scratch& scratch_;
  std::vector<Token> tokens_;
};

std::vector<TextToken> Tokenizer::Impl::encode_tokens(
    std::string_view text, FindAdded find
) const {
  Lease lease(*this);
  Tokens sink(*this, lease.scratch());
  cut_text(text, find, true, sink);
  return std::move(sink.result);
}

Encoding Tokenizer::Impl::encode_texts(
    std::span<const std::string_view> texts, const EncodeOptions& options
) const {
  std::vector<std::vector<TextToken>> tokens;
  for (std::string_view text : texts) {
    check_text(text);
    tokens.push_back(encode_tokens(text, options.find));
  }
  if (options.truncate) {
    size_t added = options.add_special
                       ? parts.post_processor.added_tokens(texts.size())
                       : 0;
    parts.limits.truncate(tokens, added);
  }
  Encoding encoding =
      parts.post_processor.apply(texts, tokens, options.add_special);
  if (options.pad) {
    parts.limits.pad(encoding);
  }
  return encoding;
}

Encoding Tokenizer::encode_with_offsets(
    std::string_view text, EncodeOptions options
) const {
  return impl_->encode_texts({&text, 1}, options);
}

Encoding Tokenizer::encode_pair(
    std::string_view first, std::string_view second, EncodeOptions options
) const {
  const std::string_view texts[] = {first, second};
  return impl_->encode_texts(texts, options);
}

std::vector<ByteRange> character_offsets(
    std::string_view text, std::span<const ByteRange> bytes
) {
  // The number of the character that each byte, and the end, belongs to.
  std::vector<uint32_t> numbers(text.size() + 1);
  uint32_t number = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    bool inside =
        i < text.size() && (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80;
    number += !inside && i > 0 ? 1 : 0;
    numbers[i] = number;
  }
  std::vector<ByteRange> characters;
  characters.reserve(bytes.size());
  for (const ByteRange& range : bytes) {
    if (range.begin > text.size()) {
      characters.push_back(range);
    } else {
      size_t last = std::min(range.end, text.size());
      characters.push_back({numbers[range.begin], numbers[last]});
    }
  }
  return characters;
}

}  // namespace mlxcel
