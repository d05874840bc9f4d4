#include "mlxcel/tokenizer/models/sentencepiece_model.h"

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
      unknown_(file.unknown_id()),
      bytes_(vocab().byte_tokens()) {
  std::vector<TokenAutomaton::Entry> user_defined;
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    const SentencePieceFile::Piece& piece = file.pieces[id];
    types_.push_back(piece.type);
    if (piece.type == Type::user_defined) {
      user_defined.push_back({piece.text, 0, static_cast<int32_t>(id)});
    }
  }
  user_defined_ = TokenAutomaton(user_defined);
}

void SentencePieceModel::encode(
    std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids
) const {
  Output output(*this, piece, &ids, nullptr);
  encode_piece(piece, scratch, output);
}

void SentencePieceModel::encode_tokens(
    std::string_view piece, Scratch& scratch, std::vector<Token>& tokens
) const {
  Output output(*this, piece, nullptr, &tokens);
  encode_piece(piece, scratch, output);
}

void SentencePieceModel::Output::add(std::string_view text, int32_t id) {
  bool unknown = id < 0 || id == model_.unknown_;
  auto begin = static_cast<size_t>(text.data() - piece_.data());
  if (!unknown) {
    put(id, begin, begin + text.size());
  } else if (model_.byte_fallback_) {
    put_bytes(text, begin);
  } else if (!after_unknown_) {
    put(model_.unknown_, begin, begin + text.size());
  } else if (tokens_ != nullptr) {
    tokens_->back().end = begin + text.size();
  }
  after_unknown_ = unknown;
}

void SentencePieceModel::Output::put(int32_t id, size_t begin, size_t end) {
  if (ids_ != nullptr) {
    ids_->push_back(id);
  }
  if (tokens_ != nullptr) {
    tokens_->push_back({id, begin, end});
  }
}

void SentencePieceModel::Output::put_bytes(
    std::string_view text, size_t begin
) {
  for (char c : text) {
    put(model_.bytes_[static_cast<unsigned char>(c)], begin, begin + text.size()
    );
  }
}

}  // namespace mlxcel::tokenizer
