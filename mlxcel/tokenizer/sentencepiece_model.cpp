#include "mlxcel/tokenizer/sentencepiece_model.h"

#include <fmt/format.h>

namespace mlxcel::tokenizer {

namespace {

Vocab make_vocab(const SentencePieceFile& file) {
  Vocab vocab;
  vocab.reserve(file.pieces.size());
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    // A NUL is no piece, but keeps an id.
    if (file.pieces[id].text != std::string_view("\0", 1)) {
      vocab.add(file.pieces[id].text, static_cast<int32_t>(id));
    }
  }
  vocab.build();
  return vocab;
}

}  // namespace

std::unique_ptr<SentencePieceModel> SentencePieceModel::make(
    const SentencePieceFile& file
) {
  if (file.kind == SentencePieceFile::Kind::bpe) {
    return std::make_unique<SentencePieceBpe>(file);
  }
  return std::make_unique<SentencePieceUnigram>(file);
}

SentencePieceModel::SentencePieceModel(const SentencePieceFile& file)
    : Model(make_vocab(file)),
      byte_fallback_(file.byte_fallback),
      unknown_(file.unknown_id()) {
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    const SentencePieceFile::Piece& piece = file.pieces[id];
    types_.push_back(piece.type);
    if (piece.type == Type::user_defined) {
      user_defined_.add(piece.text, static_cast<int32_t>(id));
    }
  }
  for (unsigned b = 0; b < 256; ++b) {
    bytes_[b] = vocab().find_or_none(fmt::format("<0x{:02X}>", b));
  }
}

void SentencePieceModel::Output::add(std::string_view text, int32_t id) {
  bool unknown = id < 0 || id == model_.unknown_;
  if (!unknown) {
    ids_.push_back(id);
  } else if (model_.byte_fallback_) {
    for (char c : text) {
      ids_.push_back(model_.bytes_[static_cast<unsigned char>(c)]);
    }
  } else if (!after_unknown_) {
    ids_.push_back(model_.unknown_);
  }
  after_unknown_ = unknown;
}

}  // namespace mlxcel::tokenizer
