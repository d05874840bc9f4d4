#include "tests/unit/backend_cpu/support/attention_case.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/unit/backend_graph/support/random_weights.h"
#include "tests/unit/backend_graph/support/reference.h"

namespace mlxcel::test {

using backend::AttentionSpec;
using backend::Backend;
using backend::RopeSpec;
using backend::cpu::ActivationMode;
using backend::cpu::CpuBackend;
using backend::cpu::CpuOptions;

CpuOptions cpu_options(backend::cpu::Isa isa, bool exact) {
  CpuOptions options;
  options.exact = exact;
  options.isa = isa;
  options.activations = exact ? ActivationMode::float32 : ActivationMode::int8;
  options.half_state = !exact;
  return options;
}

AttentionSpec attention_spec(
    int64_t heads, int64_t kv_heads, int64_t key_dim, int64_t value_dim
) {
  AttentionSpec spec;
  spec.heads = heads;
  spec.kv_heads = kv_heads;
  spec.key_dim = key_dim;
  spec.value_dim = value_dim;
  spec.scale = 1.0F / std::sqrt(static_cast<float>(key_dim));
  return spec;
}

RopeSpec rope_spec(int64_t dims, bool interleaved) {
  RopeSpec rope;
  rope.dims = dims;
  rope.interleaved = interleaved;
  for (int64_t i = 0; i < dims / 2; ++i) {
    rope.inverse_frequencies.push_back(static_cast<float>(
        std::pow(1e4, -2.0 * static_cast<double>(i) / static_cast<double>(dims))
    ));
  }
  return rope;
}

int64_t qkv_width(const AttentionSpec& spec) {
  return spec.heads * spec.key_dim +
         spec.kv_heads * (spec.key_dim + spec.value_dim);
}

AttentionCase::AttentionCase(
    const AttentionSpec& spec, std::vector<int64_t> lengths
)
    : spec_(spec) {
  Random random(17);
  for (int64_t length : lengths) {
    auto count = static_cast<size_t>(length * qkv_width(spec));
    inputs_.push_back(random.uniform(count, 2.0F));
  }
}

std::vector<std::vector<float>> AttentionCase::run(
    const CpuOptions& options,
    const std::vector<std::vector<Piece>>& steps,
    int threads
) const {
  ThreadPool pool(threads);
  CpuBackend backend(options, pool);
  auto layer = backend.prepare_attention(spec_);
  int64_t blocks = 0;
  for (const std::vector<float>& input : inputs_) {
    auto values = static_cast<int64_t>(input.size());
    blocks += values / qkv_width(spec_) / backend::kBlockTokens + 1;
  }
  Session session(backend, attention_layout(spec_, spec_.layer + 1), blocks);
  std::vector<std::vector<float>> outputs(inputs_.size());
  int64_t width = qkv_width(spec_);
  int64_t out_width = spec_.heads * spec_.value_dim;
  for (const std::vector<Piece>& pieces : steps) {
    std::vector<float> rows;
    for (const Piece& piece : pieces) {
      const std::vector<float>& input = inputs_[piece.sequence];
      int64_t done =
          static_cast<int64_t>(outputs[piece.sequence].size()) / out_width;
      auto from = input.begin() + done * width;
      rows.insert(rows.end(), from, from + piece.count * width);
    }
    std::vector<float> out = session.step(pieces, [&](Backend& b) {
      int64_t count = static_cast<int64_t>(rows.size()) / width;
      return b.attend(*layer, b.import_rows(rows, count, width));
    });
    auto at = out.begin();
    for (const Piece& piece : pieces) {
      std::vector<float>& output = outputs[piece.sequence];
      output.insert(output.end(), at, at + piece.count * out_width);
      at += piece.count * out_width;
    }
  }
  return outputs;
}

const std::vector<double>& AttentionCase::expected(size_t sequence) {
  expected_.resize(inputs_.size());
  std::vector<double>& expected = expected_[sequence];
  if (!expected.empty()) {
    return expected;
  }
  const std::vector<float>& input = inputs_[sequence];
  std::vector<int32_t> positions(
      input.size() / static_cast<size_t>(qkv_width(spec_))
  );
  std::iota(positions.begin(), positions.end(), 0);
  auto weights = [](const std::optional<backend::HeadNorm>& norm) {
    return norm ? static_cast<const backend::cpu::CpuVector&>(*norm->weight)
                      .values
                : std::vector<float>();
  };
  expected = reference_attention(
      spec_,
      weights(spec_.query_norm),
      weights(spec_.key_norm),
      input,
      positions
  );
  return expected;
}

std::vector<std::vector<Piece>> even_steps(
    std::span<const int64_t> lengths, int64_t count, backend::Role role
) {
  std::vector<std::vector<Piece>> steps;
  int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  for (int64_t at = 0; at < longest; at += count) {
    std::vector<Piece> pieces;
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (at < lengths[i]) {
        pieces.push_back({i, std::min(count, lengths[i] - at), role});
      }
    }
    steps.push_back(pieces);
  }
  return steps;
}

}  // namespace mlxcel::test
