#include <limits>

#include "tests/harness/cases.h"
#include "tests/unit/backend_graph/support/random_weights.h"
#include "tests/unit/backend_graph/support/session.h"

namespace mlxcel::test {

namespace {

using backend::Backend;
using backend::NormKind;
using backend::Operation;
using backend::Tensor;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Case row_case(
    std::string name,
    int64_t rows,
    int64_t cols,
    std::function<Tensor(Backend&, const Tensor&, const Tensor&)> body
) {
  Case item;
  item.name = std::move(name) + " [" + std::to_string(rows) + ", " +
              std::to_string(cols) + "]";
  item.operation = Operation::norm;
  item.bounds = kFloat;
  item.run = [=](Backend& on) -> Rows {
    Random random(31);
    std::vector<float> x = random.uniform(rows * cols, 3.0F);
    std::vector<float> y = random.uniform(rows * cols, 3.0F);
    Session session(on);
    std::vector<float> out = session.alone(rows, [&](Backend& b) {
      return body(
          b, b.import_rows(x, rows, cols), b.import_rows(y, rows, cols)
      );
    });
    return {cols, std::move(out)};
  };
  return item;
}

Case norm_case(
    NormKind kind, int64_t rows, int64_t cols, bool weight, DType dtype
) {
  std::string name =
      std::string(kind == NormKind::rms ? "rms" : "layer") +
      (weight ? " weighted by " + std::string(dtype_name(dtype)) : "");
  return row_case(
      name,
      rows,
      cols,
      [=](Backend& b, const Tensor& x, const Tensor&) {
        std::vector<float> values = Random(41).uniform(cols);
        std::vector<float> offsets = Random(42).uniform(cols);
        auto w = b.prepare_vector(float_weight(values, {cols}, dtype, 1), 1);
        auto c = b.prepare_vector(float_weight(offsets, {cols}, dtype, 3), 0);
        bool layer = kind == NormKind::layer;
        return b.norm(
            kind,
            x,
            weight ? w.get() : nullptr,
            weight && layer ? c.get() : nullptr,
            layer ? 1e-5F : 1e-2F
        );
      }
  );
}

Case argmax_case(std::string name, int64_t cols, std::vector<float> values) {
  Case item;
  item.name = "argmax of " + std::move(name);
  item.operation = Operation::logits;
  item.bounds = kSame;
  item.run = [=](Backend& on) -> Rows {
    auto rows = static_cast<int64_t>(values.size()) / cols;
    std::vector<int32_t> ids(rows);
    Session session(on);
    session.alone(rows, [&](Backend& b) {
      Tensor x = b.import_rows(values, rows, cols);
      b.argmax(x, ids);
      return x;
    });
    return {1, {ids.begin(), ids.end()}};
  };
  return item;
}

// Ones, and twos at the given columns.
std::vector<float> peaks(int64_t cols, std::initializer_list<int64_t> at) {
  std::vector<float> row(cols, 1.0F);
  for (int64_t i : at) {
    row[i] = 2.0F;
  }
  return row;
}

}  // namespace

std::vector<Case> embed_cases() {
  std::vector<Case> cases;
  std::vector<WeightFormat> formats = {
      {QuantMode::mxfp4, DType::u8, 4, 32},
      {QuantMode::mxfp8, DType::u8, 8, 32},
      {QuantMode::nvfp4, DType::u8, 4, 16}};
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    formats.push_back(dense(dtype));
    for (int bits : {1, 2, 3, 4, 5, 6, 8}) {
      for (int group : {32, 64, 128}) {
        formats.push_back(affine(bits, group, dtype));
      }
    }
  }
  for (size_t number = 0; number < formats.size(); ++number) {
    const WeightFormat& format = formats[number];
    Case item;
    item.name = "embed " + format.describe() + " " +
                std::string(dtype_name(format.dtype));
    item.operation = Operation::embed;
    item.formats = {format};
    item.bounds = kHalfRows;
    item.run = [=](Backend& on) -> Rows {
      int64_t cols = format.mode == QuantMode::dense ? 77 : 384;
      auto table = on.prepare_embedding(
          random_matrix("embed", 41, cols, format, 3, {.offset = number % 6})
              .weight
      );
      Session session(on);
      session.tokens = {40, 0, 7, 7, 1, 40};
      std::vector<float> x = session.alone(6, [&](Backend& b) {
        return b.embed(*table, number % 2 == 0 ? 1.0F : 11.3F);
      });
      return {cols, std::move(x)};
    };
    cases.push_back(std::move(item));
  }
  return cases;
}

std::vector<Case> norm_cases() {
  std::vector<Case> cases;
  for (NormKind kind : {NormKind::rms, NormKind::layer}) {
    for (int64_t cols : {1, 3, 8, 31, 64, 576, 1025}) {
      for (int64_t rows : {1, 6}) {
        // Centring leaves nothing of one value.
        if (kind == NormKind::layer && cols == 1) {
          continue;
        }
        cases.push_back(norm_case(kind, rows, cols, false, DType::f32));
        cases.push_back(norm_case(kind, rows, cols, true, DType::bf16));
      }
    }
    cases.push_back(norm_case(kind, 3, 96, true, DType::f16));
    cases.push_back(norm_case(kind, 3, 96, true, DType::f32));
  }
  return cases;
}

std::vector<Case> row_cases() {
  std::vector<Case> cases;
  for (int64_t cols : {1, 5, 64, 1000}) {
    for (int64_t rows : {1, 7}) {
      cases.push_back(row_case(
          "x",
          rows,
          cols,
          [](Backend&, const Tensor& x, const Tensor&) { return x; }
      ));
      cases.push_back(row_case(
          "x + y",
          rows,
          cols,
          [](Backend& b, const Tensor& x, const Tensor& y) {
            return b.add(x, y);
          }
      ));
      // x has a second holder: a backend may not scale it in place.
      cases.push_back(row_case(
          "x + 0.3 x",
          rows,
          cols,
          [](Backend& b, const Tensor& x, const Tensor&) {
            Tensor scaled = b.multiply(x, 0.3F);
            return b.add(x, b.reduce(scaled));
          }
      ));
      cases.push_back(row_case(
          "x + (x + y)",
          rows,
          cols,
          [](Backend& b, const Tensor& x, const Tensor& y) {
            Tensor sum = b.add(x, y);
            return b.add(x, sum);
          }
      ));
    }
  }
  return cases;
}

std::vector<Case> argmax_cases() {
  return {
      argmax_case("one value", 1, {3, -3}),
      argmax_case("random values", 1001, Random(51).uniform(4 * 1001)),
      argmax_case("equal values", 100, std::vector<float>(200, -4.0F)),
      argmax_case("nothing allowed", 70, std::vector<float>(70, -kInfinity)),
      argmax_case("ties far apart", 513, peaks(513, {17, 18, 256, 512})),
      argmax_case("ties of two threads", 70000, peaks(70000, {69999, 35000})),
      argmax_case("a tie in the last block", 259, peaks(259, {257, 258})),
      argmax_case("zeros of both signs", 4, {-0.0F, 0.0F, -1, 0.0F}),
      argmax_case("infinities", 3, {-kInfinity, 1, kInfinity}),
  };
}

}  // namespace mlxcel::test
