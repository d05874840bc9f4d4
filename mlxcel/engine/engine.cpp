#include "mlxcel/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/os.h"

namespace mlxcel {

namespace {

// Large enough to amortise unpacking the weights, small enough that a layer's
// activations stay in the second-level cache.
constexpr int64_t kDefaultChunk = 512;
constexpr int64_t kPromptGrid = 64;

}  // namespace

Sequence::Sequence(Engine& engine, backend::SequenceId id)
    : engine_(engine), id_(id), blocks_(engine.allocator_) {}

Sequence::~Sequence() {
  engine_.pool_->truncate(id_, 0);
}

void Sequence::truncate(int64_t tokens) {
  tokens = std::clamp<int64_t>(tokens, 0, length());
  tokens_.resize(static_cast<size_t>(tokens));
  engine_.pool_->truncate(id_, tokens);
  blocks_.truncate(tokens);
}

Engine::Engine(LanguageModel& model, int64_t capacity)
    : model_(model),
      capacity_(capacity),
      pool_(model.backend().make_pool(
          model.state_layout(), ceil_div(capacity, backend::kBlockTokens)
      )),
      allocator_(pool_->blocks()) {}

std::unique_ptr<Sequence> Engine::open() {
  return std::unique_ptr<Sequence>(new Sequence(*this, next_id_++));
}

void Engine::add_input(const StepInput& input) {
  Sequence& sequence = *input.sequence;
  if (input.tokens.empty()) {
    fail(ErrorCode::usage, "[engine] a step without tokens");
  }
  for (int32_t id : input.tokens) {
    if (id < 0 || id >= model_.vocabulary()) {
      fail(
          ErrorCode::usage,
          fmt::format(
              "[engine] token id {}: outside the vocabulary of {}",
              id,
              model_.vocabulary()
          )
      );
    }
  }
  auto count = static_cast<int64_t>(input.tokens.size());
  if (sequence.length() + count > capacity_) {
    fail(
        ErrorCode::out_of_memory,
        fmt::format(
            "[engine] a sequence of {} tokens, room for {}",
            sequence.length() + count,
            capacity_
        )
    );
  }
  sequence.blocks_.reserve(sequence.length() + count);
  // What comes after the step must not fail.
  auto needed = sequence.tokens_.size() + input.tokens.size();
  if (sequence.tokens_.capacity() < needed) {
    sequence.tokens_.reserve(std::max(needed, 2 * sequence.tokens_.capacity()));
  }
  int64_t first = batch_.rows();
  batch_.segments.push_back({
      sequence.id_,
      first,
      count,
      sequence.length(),
      input.role,
      sequence.blocks_.blocks(),
  });
  for (int64_t i = 0; i < count; ++i) {
    batch_.tokens.push_back(input.tokens[static_cast<size_t>(i)]);
    batch_.positions.push_back(static_cast<int32_t>(sequence.length() + i));
    bool wanted = input.logits == Logits::all ||
                  (input.logits == Logits::last && i == count - 1);
    if (wanted) {
      batch_.logit_rows.push_back(static_cast<int32_t>(first + i));
    }
  }
}

void Engine::run(backend::Tensor& logits) {
  backend::Backend& backend = model_.backend();
  backend.begin(batch_, *pool_);
  try {
    logits = model_.forward();
  } catch (...) {
    try {
      backend.end();
    } catch (const Error& error) {
      // A file that can't be read explains whatever came of it.
      if (error.code() == ErrorCode::io) {
        throw;
      }
    } catch (...) {
      // The first failure is the one to tell.
    }
    throw;
  }
  backend.end();
}

void Engine::undo(std::span<const StepInput> inputs) {
  for (const StepInput& input : inputs) {
    Sequence& sequence = *input.sequence;
    sequence.truncate(pool_->kept(sequence.id_, sequence.length()));
  }
}

backend::Tensor Engine::step(std::span<const StepInput> inputs) {
  batch_.tokens.clear();
  batch_.positions.clear();
  batch_.segments.clear();
  batch_.logit_rows.clear();
  backend::Tensor logits;
  try {
    for (const StepInput& input : inputs) {
      add_input(input);
    }
    run(logits);
  } catch (const std::bad_alloc&) {
    undo(inputs);
    fail(ErrorCode::out_of_memory, "[engine] a step: out of memory");
  } catch (...) {
    undo(inputs);
    throw;
  }
  for (const StepInput& input : inputs) {
    auto& tokens = input.sequence->tokens_;
    tokens.insert(tokens.end(), input.tokens.begin(), input.tokens.end());
  }
  return logits;
}

backend::Tensor Engine::prefill(
    Sequence& sequence,
    std::span<const int32_t> tokens,
    int64_t chunk,
    const std::atomic<bool>* cancel
) {
  backend::Tensor logits;
  while (!tokens.empty()) {
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) {
      return {};
    }
    // The first piece ends on the grid, the others follow it.
    int64_t room = chunk - sequence.length() % chunk;
    size_t count = std::min(tokens.size(), static_cast<size_t>(room));
    bool last = count == tokens.size();
    StepInput input{
        &sequence,
        tokens.first(count),
        backend::Role::prompt,
        last ? Logits::last : Logits::none,
    };
    logits = step({&input, 1});
    tokens = tokens.subspan(count);
  }
  return logits;
}

int64_t prefill_chunk() {
  const char* text = os::environment("MLXCEL_PREFILL_CHUNK");
  if (text == nullptr || *text == '\0') {
    return kDefaultChunk;
  }
  auto value = parse_int(text);
  if (!value || *value < 0) {
    fail(
        ErrorCode::usage,
        fmt::format(
            "[engine] MLXCEL_PREFILL_CHUNK: expected tokens or 0, got {}",
            quote(text)
        )
    );
  }
  constexpr int64_t kUnlimited = int64_t{1} << 40;
  return *value == 0 ? kUnlimited : round_up(*value, kPromptGrid);
}

}  // namespace mlxcel
