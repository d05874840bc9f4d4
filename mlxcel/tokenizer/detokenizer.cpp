#include "mlxcel/tokenizer/detokenizer.h"

#include "mlxcel/tokenizer/tokenizer_impl.h"

namespace mlxcel {

struct StreamingDetokenizer::Impl {
  const Tokenizer::Impl& tokenizer;
  bool skip_special;
  tokenizer::DecodeStream stream;

  Impl(const Tokenizer::Impl& owner, bool skip)
      : tokenizer(owner),
        skip_special(skip),
        stream(owner.parts.decoder.stream(true)) {}

  void push(int32_t id, std::string& text) {
    std::optional<std::string_view> token = tokenizer.token(id);
    bool skip = skip_special && tokenizer.parts.added_tokens.is_special(id);
    if (token && !skip) {
      stream.push(*token, text);
    }
  }
};

StreamingDetokenizer::StreamingDetokenizer(
    const Tokenizer& tokenizer,
    std::span<const int32_t> prompt,
    bool skip_special
)
    : impl_(std::make_unique<Impl>(*tokenizer.impl_, skip_special)) {
  std::string ignored;
  for (int32_t id : prompt) {
    impl_->push(id, ignored);
    ignored.clear();
  }
}

StreamingDetokenizer::~StreamingDetokenizer() = default;
StreamingDetokenizer::StreamingDetokenizer(StreamingDetokenizer&&) noexcept =
    default;
StreamingDetokenizer&
StreamingDetokenizer::operator=(StreamingDetokenizer&&) noexcept = default;

std::string StreamingDetokenizer::push(int32_t id) {
  std::string text;
  impl_->push(id, text);
  return text;
}

std::string StreamingDetokenizer::flush() {
  std::string text;
  impl_->stream.finish(text);
  return text;
}

}  // namespace mlxcel
