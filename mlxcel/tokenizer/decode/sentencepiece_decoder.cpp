#include "mlxcel/tokenizer/models/word_mark.h"
#include "mlxcel/tokenizer/normalize/sentencepiece_text.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

using Type = SentencePieceFile::Type;

constexpr std::string_view replacement = "\xef\xbf\xbd";

struct DecodeRules {
  const SentencePieceModel& model;
  std::string unk_surface;
  bool strips;      // marks at the start of the text
  bool strips_all;  // not only one
};

class SentencePieceDecode : public DecodeStep {
 public:
  SentencePieceDecode(std::shared_ptr<const DecodeRules> rules, bool early)
      : rules_(std::move(rules)), early_(early) {}

  void push(std::string_view token) override {
    int32_t id = rules_->model.vocab().find_or_none(token);
    Type type = id < 0 ? Type::control : rules_->model.type(id);
    if (type == Type::byte) {
      push_byte(token);
      return;
    }
    give_bytes(true);
    at_start_ = at_start_ && !stripped_ && !has_text_;
    stripped_ = false;
    if (type == Type::control) {
      give(token);  // added tokens, too
    } else if (type == Type::unknown) {
      give(rules_->unk_surface);
    } else {
      push_piece(token);
    }
  }

  void finish() override {
    give_bytes(true);
  }

 private:
  void give(std::string_view text) {
    has_text_ = has_text_ || !text.empty();
    next().push(text);
  }

  void push_piece(std::string_view piece) {
    if (at_start_ && rules_->strips && piece.starts_with(word_mark)) {
      piece.remove_prefix(word_mark.size());
      stripped_ = !rules_->strips_all;
    }
    text_.clear();
    size_t done = 0;
    for (size_t at = piece.find(word_mark); at != std::string_view::npos;
         at = piece.find(word_mark, done)) {
      text_ += piece.substr(done, at - done);
      text_ += ' ';
      done = at + word_mark.size();
    }
    text_ += piece.substr(done);
    give(text_);
  }

  void push_byte(std::string_view token) {
    auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'A' + 10; };
    bytes_ += static_cast<char>(digit(token[3]) * 16 + digit(token[4]));
    if (early_) {
      give_bytes(false);
    }
  }

  /// Whole characters, U+FFFD for each byte that begins none. `last`: no
  /// further bytes will come.
  void give_bytes(bool last) {
    std::string_view rest = bytes_;
    while (!rest.empty()) {
      size_t size = utf8::length(static_cast<unsigned char>(rest[0]));
      std::string_view character = rest.substr(0, size);
      bool open = character.size() < size && utf8::certain_prefix(rest) == 0;
      if (open && !last) {
        break;
      }
      bool whole = character.size() == size && utf8::valid(character);
      give(whole ? character : replacement);
      rest.remove_prefix(whole ? size : 1);
    }
    bytes_.erase(0, bytes_.size() - rest.size());
  }

  std::shared_ptr<const DecodeRules> rules_;
  bool early_;
  bool at_start_ = true;
  bool stripped_ = false;  // the last piece lost its mark
  bool has_text_ = false;
  std::string bytes_;
  std::string text_;
};

}  // namespace

Decoder make_sentencepiece_decoder(
    const SentencePieceFile& file, const SentencePieceModel& model
) {
  auto rules = std::make_shared<const DecodeRules>(DecodeRules{
      model,
      file.unk_surface,
      file.add_dummy_prefix || file.remove_extra_whitespaces,
      file.remove_extra_whitespaces});
  return Decoder([rules](DecodeMode mode) -> std::unique_ptr<DecodeStep> {
    return std::make_unique<SentencePieceDecode>(rules, mode.early);
  });
}

}  // namespace mlxcel::tokenizer
