#include "mlxcel/tokenizer/models/plamo.h"

#include <cmath>

#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

constexpr double scale = 1e4;  // of a score to a whole number
constexpr int64_t unknown_cost = 10'000'000;
constexpr int64_t invalid_cost = 20'000'000;  // never used

Vocab make_vocab(const PlamoPieces& file) {
  Vocab vocab;
  vocab.reserve(file.pieces.size());
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    vocab.add(file.pieces[id].text, static_cast<int32_t>(id));
  }
  vocab.build();
  return vocab;
}

}  // namespace

/// The best way on from a byte of the text.
struct PlamoUnigram::Step {
  int64_t cost = 0;  // to the end
  uint32_t size = 0;
  int32_t id = -1;
};

struct PlamoUnigram::Work : RememberingModel::Work {
  std::vector<Step> steps;
};

PlamoUnigram::PlamoUnigram(const PlamoPieces& file)
    : RememberingModel(make_vocab(file)), bytes_(vocab().byte_tokens()) {
  std::vector<TokenAutomaton::Entry> entries;
  for (size_t i = 0; i < file.pieces.size(); ++i) {
    const PlamoPieces::Piece& piece = file.pieces[i];
    auto id = static_cast<int32_t>(i);
    // To even, as Python rounds; a score that is no number can't be used.
    double cost = std::nearbyint(-piece.score * scale);
    bool usable = cost > -1e15 && cost < static_cast<double>(invalid_cost);
    costs_.push_back(usable ? static_cast<int64_t>(cost) : invalid_cost);
    if (!piece.is_byte && usable) {
      entries.push_back({piece.text, 0, id});
    }
  }
  pieces_ = TokenAutomaton(entries);
}

std::unique_ptr<Model::Scratch> PlamoUnigram::make_scratch() const {
  return std::make_unique<Work>();
}

PlamoUnigram::Step PlamoUnigram::best_step(
    std::string_view text, size_t begin, const Work& work, MatchEffort& effort
) const {
  // An unknown character comes last of equal ways, longer pieces first.
  auto size = utf8::length(static_cast<unsigned char>(text[begin]));
  Step best{work.steps[begin + size].cost + unknown_cost, size, -1};
  TokenAutomaton::Beginnings found(pieces_, text.substr(begin), effort);
  while (const TokenAutomaton::Output* piece = found.next()) {
    auto id = static_cast<size_t>(piece->id);
    int64_t cost = work.steps[begin + piece->length].cost + costs_[id];
    if (cost <= best.cost) {
      best = {cost, piece->length, piece->id};
    }
  }
  return best;
}

void PlamoUnigram::find_steps(std::string_view text, Work& work) const {
  work.steps.assign(text.size() + 1, {});
  MatchEffort effort(text);
  for (size_t end = text.size(); end > 0;) {
    size_t begin = utf8::last_begin(text.substr(0, end));
    work.steps[begin] = best_step(text, begin, work, effort);
    end = begin;
  }
}

void PlamoUnigram::encode_tokens(
    std::string_view piece, Scratch& scratch, std::vector<Token>& tokens
) const {
  auto& work = static_cast<Work&>(scratch);
  find_steps(piece, work);
  for (size_t begin = 0; begin < piece.size();) {
    const Step& step = work.steps[begin];
    size_t end = begin + step.size;
    if (step.id >= 0) {
      tokens.push_back({step.id, begin, end});
    } else {
      for (char c : piece.substr(begin, step.size)) {
        tokens.push_back({bytes_[static_cast<unsigned char>(c)], begin, end});
      }
    }
    begin = end;
  }
}

}  // namespace mlxcel::tokenizer
