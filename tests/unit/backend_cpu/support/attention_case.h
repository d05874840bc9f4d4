#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mlxcel/backend/cpu/cpu_backend.h"
#include "tests/unit/backend_graph/support/session.h"

namespace mlxcel::test {

/// float32 everywhere, or the default with half-precision state.
backend::cpu::CpuOptions cpu_options(backend::cpu::Isa isa, bool exact);

/// Attention of `heads` over `kv_heads`, scaled by 1 / sqrt(key_dim).
backend::AttentionSpec attention_spec(
    int64_t heads, int64_t kv_heads, int64_t key_dim, int64_t value_dim
);
/// Frequencies 10000^(-2i / dims).
backend::RopeSpec rope_spec(int64_t dims, bool interleaved);
/// Values of a row of q, k and v.
int64_t qkv_width(const backend::AttentionSpec& spec);

/// A layer and the random q, k, v of some sequences, to be fed in any pieces.
class AttentionCase {
 public:
  AttentionCase(
      const backend::AttentionSpec& spec, std::vector<int64_t> lengths
  );

  /// Feeds the steps, each a list of pieces whose `sequence` is an index into
  /// the lengths. Returns the outputs per sequence, in the order of its tokens.
  std::vector<std::vector<float>> run(
      const backend::cpu::CpuOptions& options,
      const std::vector<std::vector<Piece>>& steps,
      int threads = 1
  ) const;
  /// The same by a naive loop in double precision; computed once.
  const std::vector<double>& expected(size_t sequence);

 private:
  backend::AttentionSpec spec_;
  std::vector<std::vector<float>> inputs_;
  std::vector<std::vector<double>> expected_;
};

/// One piece of `count` tokens per sequence and step until all are fed.
std::vector<std::vector<Piece>> even_steps(
    std::span<const int64_t> lengths, int64_t count, backend::Role role
);

}  // namespace mlxcel::test
