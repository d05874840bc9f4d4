#include "tests/unit/backend_graph/support/session.h"

#include <numeric>

#include "mlxcel/backend/factory.h"
#include "mlxcel/core/error.h"

namespace mlxcel::test {

using backend::Backend;
using backend::Batch;
using backend::Segment;

Session::Session(
    Backend& on, const backend::StateLayout& layout, int64_t blocks
)
    : backend_(on), pool_(on.make_pool(layout, blocks)) {
  // Handed out from both ends, so that a sequence's blocks don't lie in order.
  for (int64_t i = 0; i < blocks; ++i) {
    int64_t block = i % 2 == 0 ? i / 2 : blocks - 1 - i / 2;
    free_.push_back(static_cast<int32_t>(block));
  }
}

std::vector<float> Session::step(
    std::span<const Piece> pieces,
    const Body& body,
    std::vector<int32_t> positions,
    std::vector<int32_t> logit_rows
) {
  Batch batch;
  bool follow = positions.empty();
  batch.positions = std::move(positions);
  int64_t row = 0;
  for (const Piece& piece : pieces) {
    Sequence& sequence = sequences_[piece.sequence];
    int64_t held = sequence.tokens + piece.count;
    while (static_cast<int64_t>(sequence.blocks.size()) *
               backend::kBlockTokens <
           held) {
      sequence.blocks.push_back(free_.back());
      free_.pop_back();
    }
    Segment segment;
    segment.sequence = piece.sequence;
    segment.first = row;
    segment.count = piece.count;
    segment.position = sequence.tokens;
    segment.role = piece.role;
    batch.segments.push_back(segment);
    for (int64_t i = 0; follow && i < piece.count; ++i) {
      batch.positions.push_back(static_cast<int32_t>(sequence.tokens + i));
    }
    sequence.tokens = held;
    row += piece.count;
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    batch.segments[i].blocks = sequences_[pieces[i].sequence].blocks;
  }
  batch.tokens = tokens.empty() ? std::vector<int32_t>(row) : tokens;
  batch.logit_rows = std::move(logit_rows);
  if (batch.logit_rows.empty()) {
    batch.logit_rows.resize(row);
    std::iota(batch.logit_rows.begin(), batch.logit_rows.end(), 0);
  }
  backend_.begin(batch, *pool_);
  backend::Tensor result = body(backend_);
  std::vector<float> out(result.rows() * result.cols());
  backend_.export_rows(result, out);
  backend_.end();
  return out;
}

std::vector<float> Session::alone(int64_t rows, const Body& body) {
  constexpr backend::SequenceId id = 0xA10E;
  Piece piece{id, rows};
  std::vector<float> out = step({&piece, 1}, body);
  truncate(id, 0);
  return out;
}

void Session::truncate(backend::SequenceId sequence, int64_t count) {
  pool_->truncate(sequence, count);
  Sequence& kept = sequences_[sequence];
  kept.tokens = std::min(kept.tokens, count);
  if (count == 0) {
    free_.insert(free_.end(), kept.blocks.begin(), kept.blocks.end());
    sequences_.erase(sequence);
  }
}

backend::StateLayout attention_layout(
    const backend::AttentionSpec& spec, int64_t layers
) {
  backend::LayerState layer;
  layer.kind = backend::LayerState::Kind::attention;
  layer.kv_heads = spec.kv_heads;
  layer.key_dim = spec.key_dim;
  layer.value_dim = spec.value_dim;
  backend::StateLayout layout;
  layout.layers.assign(layers, layer);
  return layout;
}

std::unique_ptr<Backend> make_built(const std::string& name, bool exact) {
  for (const backend::BackendFactory& factory : backend::built_backends()) {
    if (factory.name == name) {
      return factory.create("cpu", backend::Numerics{.exact = exact});
    }
  }
  fail(ErrorCode::not_found, name + ": not built");
}

}  // namespace mlxcel::test
