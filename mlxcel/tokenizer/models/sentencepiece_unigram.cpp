#include <algorithm>
#include <limits>

#include "mlxcel/tokenizer/models/sentencepiece_model.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

constexpr float unknown_penalty = 10.0F;
// Beyond this a sum is brought back to zero, with those it is compared to.
constexpr float max_sum = 100000.0F;

/// Of a user-defined piece: better than any way through normal ones.
float user_defined_score(size_t bytes) {
  return static_cast<float>(0.1 * (static_cast<double>(bytes) - 1));
}

}  // namespace

struct SentencePieceUnigram::Work : Model::Scratch {
  /// The best way to a byte of the text.
  struct Way {
    float score = 0;
    int32_t id = -1;
    uint32_t begin = none;  // of its last piece
  };
  static constexpr uint32_t none = ~0u;

  std::vector<Way> ways;
  std::vector<uint32_t> ends;
};

SentencePieceUnigram::SentencePieceUnigram(const SentencePieceFile& file)
    : SentencePieceModel(file) {
  float lowest = std::numeric_limits<float>::max();
  std::vector<TokenAutomaton::Entry> entries;
  for (size_t i = 0; i < file.pieces.size(); ++i) {
    const SentencePieceFile::Piece& piece = file.pieces[i];
    auto id = static_cast<int32_t>(i);
    scores_.push_back(
        is_user_defined(id) ? user_defined_score(piece.text.size())
                            : piece.score
    );
    if (type(id) == Type::normal) {
      lowest = std::min(lowest, piece.score);
    }
    if (is_text(id) && type(id) != Type::unused) {
      entries.push_back({piece.text, 0, id});
    }
  }
  pieces_ = TokenAutomaton(entries);
  unknown_score_ = lowest - unknown_penalty;
}

std::unique_ptr<Model::Scratch> SentencePieceUnigram::make_scratch() const {
  return std::make_unique<Work>();
}

void SentencePieceUnigram::find_ways(std::string_view text, Work& work) const {
  auto& ways = work.ways;
  ways.assign(text.size() + 1, {});
  size_t furthest = 0;
  MatchEffort effort(text);
  auto offer = [&](size_t begin, size_t end, float score, int32_t id) {
    furthest = std::max(furthest, end);
    Work::Way& way = ways[end];
    if (way.begin == Work::none || score > way.score) {
      way = {score, id, static_cast<uint32_t>(begin)};
    }
  };
  for (size_t begin = 0; begin < text.size();) {
    float sum = ways[begin].score;
    if (sum < -max_sum || sum > max_sum) {
      for (size_t i = begin; i <= furthest; ++i) {
        bool reached = i == begin || ways[i].begin != Work::none;
        ways[i].score -= reached ? sum : 0.0F;
      }
      sum = 0;
    }
    size_t size = utf8::length(static_cast<unsigned char>(text[begin]));
    bool has_single = false;
    TokenAutomaton::Beginnings found(pieces_, text.substr(begin), effort);
    while (const TokenAutomaton::Output* piece = found.next()) {
      auto id = static_cast<size_t>(piece->id);
      offer(begin, begin + piece->length, scores_[id] + sum, piece->id);
      has_single = has_single || piece->length == size;
    }
    if (!has_single) {
      offer(begin, begin + size, unknown_score_ + sum, -1);
    }
    begin += size;
  }
}

void SentencePieceUnigram::encode_piece(
    std::string_view piece, Scratch& scratch, Output& output
) const {
  auto& work = static_cast<Work&>(scratch);
  find_ways(piece, work);
  work.ends.clear();
  for (auto end = static_cast<uint32_t>(piece.size()); end > 0;
       end = work.ways[end].begin) {
    work.ends.push_back(end);
  }
  size_t begin = 0;
  for (auto end = work.ends.rbegin(); end != work.ends.rend(); ++end) {
    output.add(piece.substr(begin, *end - begin), work.ways[*end].id);
    begin = *end;
  }
}

}  // namespace mlxcel::tokenizer
