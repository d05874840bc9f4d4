#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/core/error.h"
#include "mlxcel/weights/matrix_rows.h"
#include "mlxcel/weights/quantization.h"

namespace mlxcel {

std::vector<float> dequantize(const LinearWeight& weight) {
  MatrixRows rows(weight);
  std::vector<float> values(static_cast<size_t>(weight.rows * weight.cols));
  for (int64_t row = 0; row < weight.rows; ++row) {
    rows.read(row, values.data() + row * weight.cols);
  }
  return values;
}

AffinePlanes quantize_affine(
    std::span<const float> values,
    int64_t rows,
    int64_t cols,
    int bits,
    int group
) {
  bool known_bits = bits >= 2 && bits <= 8 && bits != 7;
  if (!known_bits || group <= 0 || group % 32 != 0 || rows < 0 || cols < 0 ||
      cols % group != 0 ||
      values.size() / std::max<int64_t>(cols, 1) != static_cast<size_t>(rows)) {
    fail(
        ErrorCode::usage,
        fmt::format(
            "[weights] cannot quantise [{}, {}] to {} bits in groups of {}",
            rows,
            cols,
            bits,
            group
        )
    );
  }
  AffinePlanes planes;
  size_t groups = values.size() / static_cast<size_t>(group);
  planes.codes.resize(values.size() / 32 * static_cast<size_t>(bits));
  planes.scales.resize(groups);
  planes.biases.resize(groups);
  quantize_affine_into(
      values,
      bits,
      group,
      planes.codes.data(),
      planes.scales.data(),
      planes.biases.data()
  );
  return planes;
}

}  // namespace mlxcel
