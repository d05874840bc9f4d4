#include <cmath>

#include "tests/harness/attend_data.h"
#include "tests/harness/cases.h"

namespace mlxcel::test {

namespace {

using backend::Backend;
using backend::Role;

std::vector<AttendData> attention_shapes() {
  return {
      {"1 head of 8", 1, 1, 8, 8},
      {"3 heads of 20", 3, 3, 20, 20},
      {"6 on 2 of 64", 6, 2, 64, 64},
      {"9 on 3 of 64", 9, 3, 64, 64, RopeKind::half_split, 64},
      {"7 on 1 of 80", 7, 1, 80, 80, RopeKind::half_split, 80},
      {"8 on 4 of 128", 8, 4, 128, 128, RopeKind::interleaved, 128},
      {"4 on 2 of 24 and 16", 4, 2, 24, 16, RopeKind::interleaved, 24},
      {"4 on 2 of 6 and 11", 4, 2, 6, 11, RopeKind::half_split, 6},
      {"2 of 32, 12 turned", 2, 2, 32, 32, RopeKind::half_split, 12},
      {"2 of 32, 10 in pairs", 2, 2, 32, 32, RopeKind::interleaved, 10},
      {"amplitude", 2, 1, 32, 32, RopeKind::half_split, 24, 1.3F},
      {"head norms", 4, 2, 64, 64, RopeKind::half_split, 64, 1, 0, true},
      {"head norms alone", 4, 2, 48, 48, RopeKind::none, 0, 1, 0, true},
      {"window of 1", 2, 1, 16, 16, RopeKind::half_split, 16, 1, 1},
      {"window of 33", 2, 1, 16, 16, RopeKind::half_split, 16, 1, 33},
      {"window of 64", 4, 2, 64, 64, RopeKind::interleaved, 64, 1, 64, true},
      {"256 wide", 2, 1, 256, 256, RopeKind::half_split, 256},
  };
}

std::vector<std::vector<Piece>> repeat(size_t steps, std::vector<Piece> step) {
  return std::vector<std::vector<Piece>>(steps, std::move(step));
}

struct Feed {
  const char* name;
  std::vector<std::vector<Piece>> steps;
};

std::vector<Feed> feeds() {
  std::vector<Feed> all = {
      {"one token", {{{1, 1}}}},
      {"a prompt", {{{1, 70}}}},
      {"a long prompt", {{{1, 257}}}},
      {"chunks", {{{1, 64}}, {{1, 64}}, {{1, 1}}, {{1, 19}}, {{1, 2}}}},
      {"two prompts", {{{1, 31}, {2, 45}}}},
      {"one token twice", {{{1, 1}, {2, 1}}, {{2, 1}, {1, 1}}}},
  };
  Feed generated{"generated", {{{1, 60}}}};
  for (auto& step : repeat(40, {{1, 1, Role::generated}})) {
    generated.steps.push_back(step);
  }
  all.push_back(generated);
  all.push_back({"generated from nothing", repeat(5, {{1, 1, Role::generated}})}
  );
  all.push_back({"drafted", {{{1, 61}}, {{1, 4, Role::generated}}}});
  Feed mixed{"mixed", {{{1, 50}, {2, 3}}}};
  mixed.steps.push_back(
      {{2, 1, Role::generated}, {1, 64}, {3, 9}, {4, 3, Role::generated}}
  );
  for (auto& step : repeat(
           34,
           {{3, 1, Role::generated}, {1, 1, Role::generated}, {5, 3}, {2, 1}}
       )) {
    mixed.steps.push_back(step);
  }
  all.push_back(mixed);
  return all;
}

Case attend_case(const AttendData& data, const Feed& feed) {
  Case item;
  item.name = std::string(data.name) + ", " + feed.name;
  item.operation = backend::Operation::attend;
  item.bounds = kHalfState;
  auto steps = feed.steps;
  item.run = [=](Backend& on) { return run_attend(data, steps, on); };
  return item;
}

}  // namespace

int64_t AttendData::width() const {
  return heads * key_dim + kv_heads * (key_dim + value_dim);
}

backend::AttentionSpec attention_of(const AttendData& data, Backend& on) {
  backend::AttentionSpec spec;
  spec.heads = data.heads;
  spec.kv_heads = data.kv_heads;
  spec.key_dim = data.key_dim;
  spec.value_dim = data.value_dim;
  spec.scale = 1.0F / std::sqrt(static_cast<float>(data.key_dim));
  spec.window = data.window;
  if (data.rope != RopeKind::none) {
    spec.rope.emplace();
    spec.rope->dims = data.rope_dims;
    spec.rope->interleaved = data.rope == RopeKind::interleaved;
    spec.rope->amplitude = data.amplitude;
    for (int64_t i = 0; i < data.rope_dims / 2; ++i) {
      double power =
          -2.0 * static_cast<double>(i) / static_cast<double>(data.rope_dims);
      spec.rope->inverse_frequencies.push_back(
          static_cast<float>(std::pow(1e4, power))
      );
    }
  }
  if (data.head_norms) {
    auto vector = [&](uint64_t seed, float offset) {
      std::vector<float> values = Random(seed).uniform(data.key_dim, 0.5F);
      Weight weight =
          float_weight(values, {data.key_dim}, DType::bf16, seed % 4);
      return on.prepare_vector(weight, offset);
    };
    spec.query_norm = backend::HeadNorm{vector(61, 1.0F), 1e-6F};
    spec.key_norm = backend::HeadNorm{vector(62, 0.5F), 1e-3F};
  }
  return spec;
}

std::vector<float> attend_rows(
    const AttendData& data, backend::SequenceId sequence, int64_t tokens
) {
  return Random(70 + sequence).uniform(tokens * data.width(), 2.0F);
}

Rows run_attend(
    const AttendData& data,
    const std::vector<std::vector<Piece>>& steps,
    Backend& on
) {
  constexpr int64_t longest = 300;
  backend::AttentionSpec spec = attention_of(data, on);
  auto layer = on.prepare_attention(spec);
  Session session(on, attention_layout(spec));
  int64_t width = data.width();
  std::map<backend::SequenceId, int64_t> held;
  Rows result{data.heads * data.value_dim, {}};
  for (const std::vector<Piece>& pieces : steps) {
    std::vector<float> qkv;
    for (const Piece& piece : pieces) {
      std::vector<float> rows = attend_rows(data, piece.sequence, longest);
      auto first = rows.begin() + held[piece.sequence] * width;
      qkv.insert(qkv.end(), first, first + piece.count * width);
      held[piece.sequence] += piece.count;
    }
    int64_t count = static_cast<int64_t>(qkv.size()) / width;
    std::vector<float> out = session.step(pieces, [&](Backend& b) {
      return b.attend(*layer, b.import_rows(qkv, count, width));
    });
    result.values.insert(result.values.end(), out.begin(), out.end());
  }
  return result;
}

// Every shape with a prompt, chunks and generated tokens.
std::vector<Case> attend_cases() {
  std::vector<Case> cases;
  for (const AttendData& data : attention_shapes()) {
    Feed feed{"prompt and generated", {{{1, 64}}, {{1, 41}}}};
    for (int i = 0; i < 3; ++i) {
      feed.steps.push_back({{1, 1, Role::generated}});
    }
    cases.push_back(attend_case(data, feed));
  }
  return cases;
}

// Every way of feeding, with and without a window.
std::vector<Case> attend_step_cases() {
  std::vector<Case> cases;
  for (const Feed& feed : feeds()) {
    AttendData data = {"4 on 2 of 32", 4, 2, 32, 32, RopeKind::half_split, 32};
    cases.push_back(attend_case(data, feed));
    data.name = "window of 40";
    data.window = 40;
    cases.push_back(attend_case(data, feed));
  }
  return cases;
}

}  // namespace mlxcel::test
