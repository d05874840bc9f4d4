#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mlxcel/backend/weight_group.h"

namespace mlxcel::test {

/// Uniform in [-1, 1): the same numbers on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  float uniform();
  std::vector<float> uniform(size_t count, float scale = 1.0F);

 private:
  uint64_t state_;
};

/// A matrix in some format and the values it stands for, decoded here in
/// double and not by the code under test.
struct RandomMatrix {
  LinearWeight weight;
  std::vector<double> values;  // [rows, cols]
  std::vector<double> bias;    // [rows] or empty
};

struct MatrixOptions {
  bool bias = false;
  /// Bytes between the end of a payload and a page that can't be read; moves
  /// the payload off alignment.
  size_t offset = 0;
};

RandomMatrix random_matrix(
    const std::string& path,
    int64_t rows,
    int64_t cols,
    const WeightFormat& format,
    uint64_t seed,
    const MatrixOptions& options = {}
);

/// A weight [values] of type f32, f16 or bf16, `values` rounded to it.
Weight float_weight(
    std::vector<float>& values,
    std::vector<int64_t> shape,
    DType dtype,
    size_t offset = 0
);

WeightFormat dense(DType dtype);
WeightFormat affine(int bits, int group, DType dtype = DType::bf16);

}  // namespace mlxcel::test
