#include "mlxcel/weights/weight_slice.h"
#include "tests/harness/cases.h"
#include "tests/unit/backend_graph/support/random_weights.h"
#include "tests/unit/backend_graph/support/session.h"

namespace mlxcel::test {

namespace {

using backend::Activation;
using backend::Backend;
using backend::Operation;
using backend::Role;
using backend::Tensor;

struct ExpertData {
  WeightFormat gate;
  WeightFormat up;
  WeightFormat down;
  backend::RouterSpec router;
  int64_t width = 128;
  int64_t inner = 128;
  std::vector<Piece> pieces;
  Activation activation = Activation::silu;
  size_t offset = 0;
};

// A stack of the same kind of matrix for each expert.
ExpertStack random_stack(
    const std::string& path,
    int64_t experts,
    int64_t rows,
    int64_t cols,
    const WeightFormat& format,
    size_t offset
) {
  ExpertStack stack;
  stack.path = path;
  stack.experts = experts;
  stack.rows = rows;
  stack.cols = cols;
  stack.format = format;
  std::vector<Weight> codes;
  std::vector<Weight> scales;
  std::vector<Weight> biases;
  for (int64_t e = 0; e < experts; ++e) {
    auto seed = static_cast<uint64_t>(e + 1) * 31 + path.size();
    LinearWeight one =
        random_matrix(path, rows, cols, format, seed, {.offset = offset})
            .weight;
    codes.push_back(one.codes);
    if (one.scales) {
      scales.push_back(*one.scales);
    }
    if (one.biases) {
      biases.push_back(*one.biases);
    }
  }
  stack.codes = stack_weights(std::move(codes));
  if (!scales.empty()) {
    stack.scales = stack_weights(std::move(scales));
  }
  if (!biases.empty()) {
    stack.biases = stack_weights(std::move(biases));
  }
  return stack;
}

std::string describe(const ExpertData& data) {
  std::string text = std::to_string(data.router.chosen) + " of " +
                     std::to_string(data.router.experts) + " experts " +
                     data.gate.describe() + " | " + data.up.describe() + " | " +
                     data.down.describe() + ", " + std::to_string(data.width) +
                     " x " + std::to_string(data.inner) + ", ";
  for (const Piece& piece : data.pieces) {
    text += (piece.role == Role::prompt ? "p" : "g") +
            std::to_string(piece.count) + " ";
  }
  return text + (data.router.normalize ? "normalised " : "") + "activation " +
         std::to_string(static_cast<int>(data.activation)) + " offset " +
         std::to_string(data.offset);
}

// Quarters in another order for each row: no rounding changes the choice.
std::vector<float> distinct_scores(int64_t rows, int64_t experts) {
  Random random(8);
  std::vector<float> scores;
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<float> order(static_cast<size_t>(experts));
    for (size_t e = 0; e < order.size(); ++e) {
      order[e] = 0.25F * static_cast<float>(e);
    }
    for (size_t e = order.size(); e > 1; --e) {
      std::swap(order[e - 1], order[random.next() % e]);
    }
    scores.insert(scores.end(), order.begin(), order.end());
  }
  return scores;
}

Rows run_experts(const ExpertData& data, Backend& on) {
  int64_t experts = data.router.experts;
  auto group = on.prepare_experts({
      0,
      random_stack(
          "gate", experts, data.inner, data.width, data.gate, data.offset
      ),
      random_stack(
          "up_", experts, data.inner, data.width, data.up, data.offset
      ),
      random_stack(
          "down__", experts, data.width, data.inner, data.down, data.offset
      ),
  });
  on.materialize();
  int64_t count = 0;
  for (const Piece& piece : data.pieces) {
    count += piece.count;
  }
  std::vector<float> x =
      Random(7).uniform(static_cast<size_t>(count * data.width));
  std::vector<float> scores = distinct_scores(count, experts);
  std::vector<float> added(static_cast<size_t>(count * data.width), 0.0F);
  Session session(on);
  std::vector<float> y = session.step(data.pieces, [&](Backend& b) {
    auto routing = b.route(b.import_rows(scores, count, experts), data.router);
    return b.experts(
        *group,
        *routing,
        b.import_rows(x, count, data.width),
        data.activation,
        b.import_rows(added, count, data.width)
    );
  });
  return {data.width, std::move(y), 0};
}

Case experts_case(const ExpertData& data) {
  Case item;
  item.name = describe(data);
  item.operation = Operation::experts;
  item.formats = {data.gate, data.up, data.down};
  item.bounds = kExperts;
  item.run = [data](Backend& on) { return run_experts(data, on); };
  return item;
}

std::vector<Piece> company() {
  return {
      {1, 5, Role::prompt},
      {2, 1, Role::generated},
      {3, 33, Role::prompt},
      {4, 1, Role::generated},
      {5, 1, Role::prompt}};
}

}  // namespace

std::vector<Case> experts_cases() {
  std::vector<WeightFormat> formats = {
      dense(DType::f32),
      dense(DType::f16),
      dense(DType::bf16),
      {QuantMode::mxfp4, DType::u8, 4, 32},
      {QuantMode::mxfp8, DType::u8, 8, 32},
      {QuantMode::nvfp4, DType::u8, 4, 16}};
  for (int bits : {2, 3, 4, 5, 6, 8}) {
    for (int group : {32, 64, 128}) {
      formats.push_back(affine(bits, group));
    }
  }
  std::vector<Case> cases;
  size_t number = 0;
  for (const WeightFormat& format : formats) {
    ExpertData data{format, format, format, {8, 2, true}};
    data.pieces = company();
    data.offset = number++ % 4;
    cases.push_back(experts_case(data));
  }
  ExpertData plain{affine(4, 64), affine(4, 64), affine(4, 64), {8, 2, false}};
  for (const backend::RouterSpec& router :
       {backend::RouterSpec{1, 1, false},
        backend::RouterSpec{5, 1, true},
        backend::RouterSpec{5, 5, false},
        backend::RouterSpec{64, 8, true}}) {
    for (const std::vector<Piece>& pieces :
         {company(),
          std::vector<Piece>{{1, 1, Role::generated}},
          std::vector<Piece>{{1, 70, Role::prompt}}}) {
      ExpertData data = plain;
      data.router = router;
      data.pieces = pieces;
      cases.push_back(experts_case(data));
    }
  }
  for (Activation activation :
       {Activation::gelu, Activation::gelu_tanh, Activation::relu}) {
    ExpertData data = plain;
    data.activation = activation;
    data.pieces = company();
    cases.push_back(experts_case(data));
  }
  ExpertData mixed{affine(4, 64), affine(6, 32), affine(8, 64), {6, 3, true}};
  mixed.width = 192;
  mixed.inner = 64;
  mixed.pieces = company();
  cases.push_back(experts_case(mixed));
  return cases;
}

}  // namespace mlxcel::test
