#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mlxcel/backend/backend.h"
#include "mlxcel/cache/block_table.h"
#include "mlxcel/models/language_model.h"

namespace mlxcel {

class Engine;

/// One conversation's place in the model: its tokens and their state.
class Sequence {
 public:
  ~Sequence();
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  /// Tokens whose state the model holds.
  int64_t length() const {
    return static_cast<int64_t>(tokens_.size());
  }
  std::span<const int32_t> tokens() const {
    return tokens_;
  }
  /// Forgets all but the first `tokens` tokens.
  void truncate(int64_t tokens);

 private:
  friend class Engine;
  Sequence(Engine& engine, backend::SequenceId id);

  Engine& engine_;
  backend::SequenceId id_;
  cache::BlockTable blocks_;
  std::vector<int32_t> tokens_;
};

/// Which logits of an input's tokens are wanted.
enum class Logits : uint8_t { none, last, all };

/// Tokens to append to a sequence in a step.
struct StepInput {
  Sequence* sequence = nullptr;
  std::span<const int32_t> tokens;
  backend::Role role = backend::Role::prompt;
  Logits logits = Logits::last;
};

/// Runs steps of a model over any number of sequences.
class Engine {
 public:
  /// `capacity`: tokens that all sequences together may hold.
  Engine(LanguageModel& model, int64_t capacity);

  std::unique_ptr<Sequence> open();

  /// Appends the inputs' tokens, all in one step. The result are the wanted
  /// rows in the order of the inputs [R, V]; empty if there are none.
  /// Throws Error(usage) for an id outside the vocabulary or an empty input,
  /// Error(out_of_memory) if the capacity is exceeded or memory runs out,
  /// Error(io) naming a weight file that could not be read. After a failure the
  /// sequences are as before, or shorter where the backend lost their state.
  backend::Tensor step(std::span<const StepInput> inputs);

  /// Appends `tokens` as prompt in pieces cut at absolute multiples of
  /// `chunk`; logits of the last token. [1, V] `cancel`, if given, ends it
  /// between pieces, with an empty result.
  backend::Tensor prefill(
      Sequence& sequence,
      std::span<const int32_t> tokens,
      int64_t chunk,
      const std::atomic<bool>* cancel = nullptr
  );

  /// Copies a row of logits to the host. [V]
  void read(const backend::Tensor& logits, std::span<float> out) const {
    model_.backend().export_rows(logits, out);
  }
  /// Bytes of state that `tokens` tokens keep in all layers.
  uint64_t state_bytes(int64_t tokens) const {
    return pool_->block_bytes() * static_cast<uint64_t>(tokens) /
           static_cast<uint64_t>(backend::kBlockTokens);
  }
  LanguageModel& model() const {
    return model_;
  }

 private:
  friend class Sequence;
  void add_input(const StepInput& input);
  void undo(std::span<const StepInput> inputs);
  void run(backend::Tensor& logits);

  LanguageModel& model_;
  int64_t capacity_;
  std::unique_ptr<backend::StatePool> pool_;
  cache::BlockAllocator allocator_;
  backend::SequenceId next_id_ = 1;
  backend::Batch batch_;
};

/// Tokens per prefill step on the backend: MLXCEL_PREFILL_CHUNK or what suits
/// it. Always a multiple of 64, the grid that prompts are cut on.
int64_t prefill_chunk();

}  // namespace mlxcel
