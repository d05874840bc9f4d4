#include "mlxcel/tokenizer/models/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "mlxcel/core/error.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {
constexpr double unk_penalty = 10;      // as sentencepiece has it
constexpr size_t flush_size = 1 << 12;  // bytes of text
}  // namespace

/// The best path to the end of a character.
struct Unigram::Step {
  double score;
  int32_t id;
  uint32_t length;  // bytes of its last token
};

struct Unigram::Work : RememberingModel::Work {
  std::vector<Step> steps;
  std::vector<Token> path;
};

/// Takes the tokens of the path in order and fuses unknown ones.
class Unigram::Emitter {
 public:
  Emitter(
      const Unigram& model, std::string_view text, std::vector<Token>& tokens
  )
      : model_(model), text_(text), tokens_(tokens) {}

  void take(const Token& token) {
    bool unknown = token.id == model_.options_.unk_id;
    if (!unknown) {
      finish();
      tokens_.push_back(token);
    } else {
      begin_ = waiting_ ? begin_ : token.begin;
      end_ = token.end;
      waiting_ = true;
    }
  }

  void finish() {
    if (waiting_) {
      waiting_ = false;
      put_unknown(begin_, end_);
    }
  }

 private:
  void put_unknown(size_t begin, size_t end) {
    std::string_view run = text_.substr(begin, end - begin);
    int32_t id = model_.vocab().find_or_none(run);
    if (id >= 0) {
      tokens_.push_back({id, begin, end});
    } else if (!put_bytes(run, begin, end)) {
      tokens_.push_back({model_.unk_id(), begin, end});
    }
  }

  /// All bytes, or nothing.
  bool put_bytes(std::string_view run, size_t begin, size_t end) {
    auto token = [this](char c) {
      return model_.byte_tokens_[static_cast<unsigned char>(c)];
    };
    if (!model_.options_.byte_fallback ||
        std::any_of(run.begin(), run.end(), [&](char c) {
          return token(c) < 0;
        })) {
      return false;
    }
    for (char c : run) {
      tokens_.push_back({token(c), begin, end});
    }
    return true;
  }

  const Unigram& model_;
  std::string_view text_;
  std::vector<Token>& tokens_;
  size_t begin_ = 0;  // of unknown characters that wait for more
  size_t end_ = 0;
  bool waiting_ = false;
};

Vocab Unigram::make_vocab(const std::vector<UnigramPiece>& pieces) {
  if (pieces.size() > Vocab::max_id) {
    fail(
        ErrorCode::invalid_input,
        fmt::format(
            "[tokenizer] expected at most {} pieces, got {}",
            Vocab::max_id,
            pieces.size()
        )
    );
  }
  Vocab vocab;
  vocab.reserve(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    vocab.add(pieces[i].text, static_cast<int32_t>(i));
  }
  vocab.build(Vocab::Repeated::kept);
  return vocab;
}

Unigram::Unigram(
    const std::vector<UnigramPiece>& pieces, UnigramOptions options
)
    : RememberingModel(make_vocab(pieces)),
      options_(options),
      byte_tokens_(vocab().byte_tokens()) {
  if (options_.unk_id && !vocab().has(*options_.unk_id)) {
    fail(
        ErrorCode::invalid_input,
        fmt::format(
            "[tokenizer] unk_id: expected the place of a piece, got {}",
            *options_.unk_id
        )
    );
  }
  double lowest = std::numeric_limits<double>::infinity();
  std::vector<TokenAutomaton::Entry> entries;
  entries.reserve(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    const UnigramPiece& piece = pieces[i];
    lowest = std::min(lowest, piece.score);
    entries.push_back({piece.text, piece.score, static_cast<int32_t>(i)});
  }
  automaton_ = TokenAutomaton(entries);
  unk_score_ = lowest - unk_penalty;
}

int32_t Unigram::unk_id() const {
  if (!options_.unk_id) {
    fail(
        ErrorCode::invalid_input,
        "[tokenizer] model.unk_id: missing, but a character is not in the "
        "vocabulary"
    );
  }
  return *options_.unk_id;
}

std::unique_ptr<Model::Scratch> Unigram::make_scratch() const {
  return std::make_unique<Work>();
}

/// The best of the tokens that end at `end`, or the character of `size` bytes
/// before it as an unknown one. Of equal scores the longer token wins: the
/// libraries try starts from left to right. `origin`: the place of steps[0].
void Unigram::extend(
    uint32_t output,
    size_t end,
    size_t size,
    size_t origin,
    std::vector<Step>& steps
) const {
  Step best{0, -1, 0};
  bool known = false;  // whether the character is a token
  for (; output != TokenAutomaton::none;
       output = automaton_.output(output).next) {
    const TokenAutomaton::Output& token = automaton_.output(output);
    double score = token.score + steps[end - origin - token.length].score;
    known = token.length == size;
    if (best.length == 0 || score > best.score) {
      best = {score, token.id, token.length};
    }
  }
  if (!known) {
    double score = unk_score_ + steps[end - origin - size].score;
    if (best.length == 0 || score > best.score) {
      best = {score, unk_id(), static_cast<uint32_t>(size)};
    }
  }
  steps[end - origin] = best;
}

void Unigram::find_path(std::string_view text, Work& work, Emitter& emitter)
    const {
  std::vector<Step>& steps = work.steps;
  size_t origin = 0;
  steps.assign(1, {0, 0, 0});
  auto flush = [&](size_t cut) {
    work.path.clear();
    for (size_t at = cut; at > origin;) {
      const Step& step = steps[at - origin];
      work.path.push_back({step.id, at - step.length, at});
      at -= step.length;
    }
    std::for_each(work.path.rbegin(), work.path.rend(), [&](const Token& t) {
      emitter.take(t);
    });
    auto first = steps.begin();
    steps.erase(first, first + static_cast<ptrdiff_t>(cut - origin));
    origin = cut;
  };
  uint32_t state = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t size = utf8::length(static_cast<unsigned char>(text[begin]));
    size_t end = begin + size;
    for (size_t i = begin; i < end; ++i) {
      state = automaton_.advance(state, static_cast<unsigned char>(text[i]));
    }
    steps.resize(end - origin + 1);
    extend(automaton_.first_output(state), end, size, origin, steps);
    // No token reaches across the start of this character: the best path to
    // there is final.
    if (begin - origin >= flush_size && automaton_.depth(state) <= size) {
      flush(begin);
    }
    begin = end;
  }
  flush(text.size());
  emitter.finish();
}

void Unigram::encode_tokens(
    std::string_view piece, Scratch& scratch, std::vector<Token>& tokens
) const {
  Emitter emitter(*this, piece, tokens);
  find_path(piece, static_cast<Work&>(scratch), emitter);
}

}  // namespace mlxcel::tokenizer
