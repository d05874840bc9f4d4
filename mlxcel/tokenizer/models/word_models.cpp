#include "mlxcel/tokenizer/models/word_models.h"

#include <fmt/format.h>

#include "mlxcel/core/error.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

/// The tokens that begin with `prefix`, without it.
TokenAutomaton automaton_of(const Vocab& vocab, const std::string& prefix) {
  std::vector<TokenAutomaton::Entry> entries;
  for (size_t i = 0; i < vocab.id_limit(); ++i) {
    auto id = static_cast<int32_t>(i);
    if (vocab.has(id) && vocab.token(id).starts_with(prefix)) {
      entries.push_back({vocab.token(id).substr(prefix.size()), 0, id});
    }
  }
  return TokenAutomaton(entries);
}

int32_t find_unk(const Vocab& vocab, const std::string& unk_token) {
  int32_t id = vocab.find_or_none(unk_token);
  if (id < 0) {
    fail(
        ErrorCode::invalid_input,
        fmt::format(
            "[tokenizer] model.unk_token: {} is not in the vocabulary",
            quote(unk_token)
        )
    );
  }
  return id;
}

}  // namespace

WordPiece::WordPiece(Vocab tokens, WordPieceOptions options)
    : RememberingModel(std::move(tokens)),
      options_(std::move(options)),
      first_(automaton_of(vocab(), "")),
      continuing_(automaton_of(vocab(), options_.continuing_subword_prefix)) {}

/// False where no token fits.
bool WordPiece::cut(std::string_view word, std::vector<Token>& tokens) const {
  MatchEffort effort(word);
  for (size_t begin = 0; begin < word.size();) {
    const TokenAutomaton& automaton = begin == 0 ? first_ : continuing_;
    Token longest{-1, begin, begin};
    TokenAutomaton::Beginnings found(automaton, word.substr(begin), effort);
    while (const TokenAutomaton::Output* token = found.next()) {
      longest = {token->id, begin, begin + token->length};
    }
    if (longest.id < 0) {
      return false;
    }
    tokens.push_back(longest);
    begin = longest.end;
  }
  return true;
}

void WordPiece::encode_tokens(
    std::string_view piece, Scratch&, std::vector<Token>& tokens
) const {
  size_t start = tokens.size();
  bool fits = utf8::count(piece) <= options_.max_input_chars_per_word;
  if (!fits || !cut(piece, tokens)) {
    tokens.resize(start);
    tokens.push_back({find_unk(vocab(), options_.unk_token), 0, piece.size()});
  }
}

WordLevel::WordLevel(Vocab tokens, std::string unk_token)
    : Model(std::move(tokens)), unk_token_(std::move(unk_token)) {}

std::unique_ptr<Model::Scratch> WordLevel::make_scratch() const {
  return std::make_unique<Scratch>();
}

void WordLevel::encode(
    std::string_view piece, Scratch&, std::vector<int32_t>& ids
) const {
  int32_t id = vocab().find_or_none(piece);
  ids.push_back(id >= 0 ? id : find_unk(vocab(), unk_token_));
}

void WordLevel::encode_tokens(
    std::string_view piece, Scratch&, std::vector<Token>& tokens
) const {
  int32_t id = vocab().find_or_none(piece);
  tokens.push_back(
      {id >= 0 ? id : find_unk(vocab(), unk_token_), 0, piece.size()}
  );
}

}  // namespace mlxcel::tokenizer
