#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mlxcel/backend/backend.h"

namespace mlxcel::test {

/// Tokens of one sequence within a step of a Session.
struct Piece {
  backend::SequenceId sequence = 0;
  int64_t count = 1;
  backend::Role role = backend::Role::prompt;
};

/// Runs steps on a backend and keeps what an engine would keep: lengths and
/// block tables of its sequences.
class Session {
 public:
  using Body = std::function<backend::Tensor(backend::Backend&)>;

  Session(
      backend::Backend& on,
      const backend::StateLayout& layout = {},
      int64_t blocks = 64
  );

  /// One step; returns the exported result of `body`. Rotary positions follow
  /// on the tokens held unless given; all rows are logit rows unless given.
  std::vector<float> step(
      std::span<const Piece> pieces,
      const Body& body,
      std::vector<int32_t> positions = {},
      std::vector<int32_t> logit_rows = {}
  );
  /// A step of `rows` prompt tokens of one sequence that is dropped after it.
  std::vector<float> alone(int64_t rows, const Body& body);

  void truncate(backend::SequenceId sequence, int64_t tokens);
  /// Ids of the next step's tokens; zeros unless set.
  std::vector<int32_t> tokens;

 private:
  struct Sequence {
    int64_t tokens = 0;
    std::vector<int32_t> blocks;
  };

  backend::Backend& backend_;
  std::unique_ptr<backend::StatePool> pool_;
  std::map<backend::SequenceId, Sequence> sequences_;
  std::vector<int32_t> free_;
};

/// A layout of `layers` attention layers like `spec`.
backend::StateLayout attention_layout(
    const backend::AttentionSpec& spec, int64_t layers = 1
);

/// A backend that was built in, on the CPU.
std::unique_ptr<backend::Backend> make_built(
    const std::string& name, bool exact
);

}  // namespace mlxcel::test
