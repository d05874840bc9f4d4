#include <cmath>
#include <numeric>
#include <optional>

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

struct PartData {
  int64_t rows = 0;
  WeightFormat format;
  bool bias = false;
};

struct LinearData {
  std::vector<PartData> parts;
  int64_t cols = 0;
  /// Tokens of each segment, and whose they are.
  std::vector<Piece> pieces;
  std::optional<Activation> activation;
  std::optional<Activation> gate;
  bool residual = false;
  size_t offset = 0;
};

const std::vector<DType> kFloats = {DType::f32, DType::f16, DType::bf16};

// Prompts and generated tokens of several sequences.
std::vector<Piece> company() {
  return {
      {1, 5, Role::prompt},
      {2, 1, Role::generated},
      {3, 33, Role::prompt},
      {4, 1, Role::generated},
      {5, 1, Role::prompt}};
}

std::vector<Piece> tokens(int64_t count, Role role) {
  if (role == Role::prompt) {
    return {{1, count, role}};
  }
  std::vector<Piece> pieces;
  for (int64_t i = 0; i < count; ++i) {
    pieces.push_back({static_cast<backend::SequenceId>(i), 1, role});
  }
  return pieces;
}

std::string describe(const LinearData& data) {
  std::string text;
  for (const PartData& part : data.parts) {
    text += (text.empty() ? "" : " | ") + std::to_string(part.rows) + " " +
            part.format.describe();
    if (part.format.mode == QuantMode::affine) {
      text += " " + std::string(dtype_name(part.format.dtype));
    }
    text += part.bias ? " + bias" : "";
  }
  text += " of " + std::to_string(data.cols) + ", ";
  for (const Piece& piece : data.pieces) {
    text += (piece.role == Role::prompt ? "p" : "g") +
            std::to_string(piece.count) + " ";
  }
  auto named = [&](const char* name, std::optional<Activation> f) {
    text += f ? name + std::to_string(static_cast<int>(*f)) + " " : "";
  };
  named("activation", data.activation);
  named("gate", data.gate);
  return text + (data.residual ? "residual " : "") + "offset " +
         std::to_string(data.offset);
}

// Roughly normal, as activations are, with one value that stands out.
std::vector<float> activations(int64_t rows, int64_t cols) {
  Random random(77);
  std::vector<float> x(rows * cols);
  for (float& value : x) {
    value = random.uniform() + random.uniform() + random.uniform();
  }
  x[x.size() / 2] = 6.0F;
  return x;
}

Rows run_linear(const LinearData& data, Backend& on) {
  backend::WeightGroup group;
  uint64_t seed = 1;
  double squares = 0;
  for (const PartData& part : data.parts) {
    MatrixOptions options{part.bias, data.offset};
    RandomMatrix matrix =
        random_matrix("m", part.rows, data.cols, part.format, seed++, options);
    for (double value : matrix.values) {
      squares += value * value;
    }
    group.parts.push_back(std::move(matrix.weight));
  }
  auto weight = on.prepare_linear(group);
  on.materialize();
  int64_t count = 0;
  for (const Piece& piece : data.pieces) {
    count += piece.count;
  }
  int64_t outputs = data.gate ? weight->rows / 2 : weight->rows;
  std::vector<float> x = activations(count, data.cols);
  std::vector<float> added = Random(5).uniform(count * outputs);
  Session session(on);
  std::vector<float> y = session.step(data.pieces, [&](Backend& b) {
    backend::Epilogue epilogue{data.activation, data.gate};
    Tensor residual;
    if (data.residual) {
      residual = b.import_rows(added, count, outputs);
      epilogue.residual = &residual;
    }
    return b.linear(*weight, b.import_rows(x, count, data.cols), epilogue);
  });
  // Activations have variance 1: three uniform values of variance 1/3.
  double usual = std::sqrt(squares / static_cast<double>(weight->rows));
  return {outputs, std::move(y), data.gate ? 0 : usual};
}

Case linear_case(const LinearData& data) {
  Case item;
  item.name = describe(data);
  item.bounds = data.gate ? kGated : kProduct;
  for (const PartData& part : data.parts) {
    item.formats.push_back(part.format);
  }
  item.run = [data](Backend& on) { return run_linear(data, on); };
  return item;
}

}  // namespace

std::vector<Case> affine_cases() {
  std::vector<Case> cases;
  size_t number = 0;
  for (int bits : {1, 2, 3, 4, 5, 6, 8}) {
    for (int group : {32, 64, 128}) {
      for (DType dtype : kFloats) {
        LinearData data;
        data.parts = {{37, affine(bits, group, dtype), number % 2 == 0}};
        data.cols = 3 * group;
        data.pieces = company();
        data.offset = number++ % 6;
        cases.push_back(linear_case(data));
      }
    }
  }
  return cases;
}

std::vector<Case> block_float_cases() {
  std::vector<Case> cases;
  for (const WeightFormat& format :
       {WeightFormat{QuantMode::mxfp4, DType::u8, 4, 32},
        WeightFormat{QuantMode::mxfp8, DType::u8, 8, 32},
        WeightFormat{QuantMode::nvfp4, DType::u8, 4, 16}}) {
    size_t number = 0;
    for (int64_t rows : {1, 16, 37, 131}) {
      for (int64_t cols : {32, 96, 160, 256, 544, 1056}) {
        LinearData data;
        data.parts = {{rows, format, number % 2 == 0}};
        data.cols = cols;
        data.pieces = company();
        data.offset = number++ % 6;
        cases.push_back(linear_case(data));
      }
    }
    LinearData gate;
    gate.parts = {{43, format, true}, {43, affine(4, 64), true}};
    gate.cols = 256;
    gate.pieces = company();
    gate.gate = Activation::silu;
    cases.push_back(linear_case(gate));
  }
  return cases;
}

std::vector<Case> dense_cases() {
  std::vector<Case> cases;
  size_t number = 0;
  for (DType dtype : kFloats) {
    for (int64_t cols : {1, 7, 32, 33, 100, 257, 576}) {
      for (int64_t rows : {1, 5, 37}) {
        LinearData data;
        data.parts = {{rows, dense(dtype), number % 2 == 0}};
        data.cols = cols;
        data.pieces = company();
        data.offset = number++ % 6;
        cases.push_back(linear_case(data));
      }
    }
  }
  return cases;
}

std::vector<Case> ragged_cases() {
  std::vector<Case> cases;
  const std::vector<WeightFormat> formats = {
      affine(4, 64),
      affine(4, 32, DType::f16),
      affine(8, 64),
      affine(6, 32),
      affine(3, 64),
      affine(5, 64),
      affine(2, 128),
      dense(DType::bf16)};
  size_t number = 0;
  for (const WeightFormat& format : formats) {
    for (int64_t rows : {1, 2, 8, 15, 16, 64, 131}) {
      for (int64_t groups : {1, 2, 5, 9, 12, 17}) {
        // A different number of tokens each time, of either role, so that all
        // meet.
        constexpr int64_t counts[] = {1, 2, 3, 4, 7, 16, 31, 64, 65};
        LinearData data;
        data.parts = {{rows, format}};
        data.cols = groups * (format.group > 0 ? format.group : 31);
        bool prompt = (number / 6 + number) % 2 == 0;
        data.pieces =
            tokens(counts[number % 9], prompt ? Role::prompt : Role::generated);
        data.offset = number++ % 4;
        cases.push_back(linear_case(data));
      }
    }
  }
  return cases;
}

std::vector<Case> merged_cases() {
  std::vector<Case> cases;
  const std::vector<std::vector<PartData>> groups = {
      {{48, affine(4, 64)}, {16, affine(4, 64)}, {16, affine(4, 64)}},
      {{48, affine(4, 64), true},
       {16, affine(4, 64), true},
       {16, affine(6, 64), true}},
      {{31, affine(4, 64)}, {9, affine(8, 32)}, {5, affine(2, 128)}},
      {{20, affine(3, 32, DType::f16)},
       {20, dense(DType::f16), true},
       {7, affine(5, 128, DType::f32)}},
      {{9, dense(DType::f32)},
       {9, dense(DType::bf16)},
       {1, dense(DType::f16)}}};
  for (const std::vector<PartData>& parts : groups) {
    for (const std::vector<Piece>& pieces :
         {company(), tokens(1, Role::generated), tokens(40, Role::prompt)}) {
      LinearData data;
      data.parts = parts;
      data.cols = 256;
      data.pieces = pieces;
      cases.push_back(linear_case(data));
    }
  }
  return cases;
}

std::vector<Case> epilogue_cases() {
  std::vector<Case> cases;
  constexpr Activation activations_known[] = {
      Activation::silu,
      Activation::gelu,
      Activation::gelu_tanh,
      Activation::relu};
  for (const WeightFormat& format : {affine(4, 64), dense(DType::bf16)}) {
    LinearData plain;
    plain.parts = {{45, format, true}};
    plain.cols = 192;
    plain.pieces = company();
    for (Activation activation : activations_known) {
      LinearData data = plain;
      data.activation = activation;
      cases.push_back(linear_case(data));
      data = plain;
      data.gate = activation;
      data.parts = {{43, format, true}, {43, affine(6, 32), true}};
      cases.push_back(linear_case(data));
    }
    plain.residual = true;
    cases.push_back(linear_case(plain));
    plain.parts.push_back({19, affine(8, 32)});
    cases.push_back(linear_case(plain));
  }
  return cases;
}

std::vector<Case> logits_cases() {
  std::vector<Case> cases;
  struct Head {
    float scale;
    float softcap;
  };
  for (const WeightFormat& format :
       {affine(4, 64),
        affine(8, 32),
        affine(6, 64),
        affine(1, 64),
        WeightFormat{QuantMode::mxfp4, DType::u8, 4, 32},
        WeightFormat{QuantMode::mxfp8, DType::u8, 8, 32},
        WeightFormat{QuantMode::nvfp4, DType::u8, 4, 16},
        dense(DType::bf16)}) {
    for (Head head : {Head{1, 0}, Head{0.25F, 0}, Head{1, 30}, Head{2, 5}}) {
      Case item;
      item.name = "logits " + format.describe() + " times " +
                  std::to_string(head.scale) + " capped at " +
                  std::to_string(head.softcap);
      item.operation = Operation::logits;
      item.formats = {format};
      item.bounds = kProduct;
      item.run = [=](Backend& on) -> Rows {
        constexpr int64_t vocabulary = 301;
        constexpr int64_t width = 128;
        backend::WeightGroup group;
        group.parts.push_back(
            random_matrix("lm_head", vocabulary, width, format, 4).weight
        );
        auto weight = on.prepare_linear(group);
        std::vector<Piece> pieces = company();
        std::vector<float> x = activations(41, width);
        Session session(on);
        std::vector<float> y = session.step(
            pieces,
            [&](Backend& b) {
              Tensor all = b.import_rows(x, 41, width);
              Tensor rows = b.select_logit_rows(all);
              return b.logits(*weight, rows, head.scale, head.softcap);
            },
            {},
            {4, 5, 38, 39, 40}
        );
        return {vocabulary, std::move(y)};
      };
      cases.push_back(std::move(item));
    }
  }
  return cases;
}

}  // namespace mlxcel::test
