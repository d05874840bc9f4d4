#include "mlxcel/tokenizer/normalize/text.h"

#include <algorithm>

#include "mlxcel/core/error.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

Text::Text(std::string_view part, size_t offset, bool tracked)
    : view_(part),
      offset_(offset),
      limit_(part.size() * 64 + (1 << 20)),
      tracked_(tracked) {}

Text::Text(const Piece& piece)
    : view_(piece.view()),
      offset_(piece.text->offset_ + piece.begin),
      limit_(piece.text->limit_),
      tracked_(piece.text->tracked_) {
  const std::vector<Origin>& origins = piece.text->origins_;
  if (!origins.empty()) {
    origins_.assign(
        origins.begin() + static_cast<ptrdiff_t>(piece.begin),
        origins.begin() + static_cast<ptrdiff_t>(piece.end)
    );
  }
}

Text::Origin Text::origin(size_t byte) const {
  if (!origins_.empty()) {
    return origins_[byte];
  }
  size_t begin = utf8::last_begin(view_.substr(0, byte + 1));
  size_t size = utf8::length(static_cast<unsigned char>(view_[begin]));
  return {offset_ + begin, offset_ + begin + size};
}

void check_growth(const Text& text, size_t size) {
  if (size > text.limit_) {
    fail(
        ErrorCode::invalid_input,
        "[tokenizer] the steps of the tokenizer blow up this text"
    );
  }
}

void apply_changes(Text& text, const std::vector<TextChange>& changes) {
  std::string out;
  std::vector<Text::Origin> origins;
  size_t at = 0;
  auto pass = [&](ptrdiff_t count) {
    for (; count > 0 && at < text.view_.size(); --count) {
      at += utf8::length(static_cast<unsigned char>(text.view_[at]));
    }
  };
  for (const TextChange& change : changes) {
    utf8::append(out, change.c);
    check_growth(text, out.size());
    if (text.tracked_) {
      Text::Origin origin{text.offset_, text.offset_};
      size_t source = change.added > 0 ? at - 1 : at;
      if ((change.added <= 0 || at > 0) && !text.empty()) {
        origin = text.origin(std::min(source, text.view_.size() - 1));
      }
      origins.resize(out.size(), origin);
    }
    pass(1 - change.added);
  }
  text.own_ = std::move(out);
  text.view_ = text.own_;
  text.origins_ = std::move(origins);
}

TextEditor::TextEditor(Text& text) : text_(text) {
  out_.reserve(text.view_.size());
}

void TextEditor::put(std::string_view bytes, Text::Origin origin) {
  check_growth(text_, out_.size() + bytes.size());
  out_ += bytes;
  if (text_.tracked_) {
    origins_.insert(origins_.end(), bytes.size(), origin);
  }
}

void TextEditor::keep(size_t count) {
  out_ += text_.view_.substr(position_, count);
  if (text_.tracked_) {
    for (size_t i = position_; i < position_ + count; ++i) {
      origins_.push_back(text_.origin(i));
    }
  }
  position_ += count;
}

void TextEditor::skip(size_t count) {
  position_ += count;
}

void TextEditor::swap(size_t count, std::string_view replacement) {
  put(replacement,
      text_.tracked_ ? text_.origin(position_) : Text::Origin{0, 0});
  position_ += count;
}

void TextEditor::insert(std::string_view addition) {
  Text::Origin origin{text_.offset_, text_.offset_};
  if (text_.tracked_ && position_ > 0) {
    origin = text_.origin(position_ - 1);
  }
  put(addition, origin);
}

void TextEditor::insert_from(size_t ahead, std::string_view addition) {
  put(addition,
      text_.tracked_ ? text_.origin(position_ + ahead) : Text::Origin{0, 0});
}

void TextEditor::finish() {
  keep(text_.view_.size() - position_);
  text_.own_ = std::move(out_);
  text_.view_ = text_.own_;
  text_.origins_ = std::move(origins_);
}

}  // namespace mlxcel::tokenizer
