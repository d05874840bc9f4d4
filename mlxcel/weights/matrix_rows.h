#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "mlxcel/weights/quantization.h"

namespace mlxcel {

/// The rows of a matrix of any format as float32: the definition of each
/// format. Affine: scale * code + bias. Block floats: code * (scale *
/// global_scale). Reading is thread-safe.
class MatrixRows {
 public:
  /// Asks the planes for their bytes, which may compute. `weight` must outlive
  /// this. Throws Error naming a plane whose bytes do not fit its shape, or
  /// the file.
  explicit MatrixRows(const LinearWeight& weight);

  /// weight.cols values.
  void read(int64_t row, float* out) const;
  /// The codes of a quantised row, a byte each.
  void read_codes(int64_t row, uint8_t* out) const;
  /// Bytes of the rows [begin, end) of a plane.
  std::span<const std::byte> code_bytes(int64_t begin, int64_t end) const;
  std::span<const std::byte> scale_bytes(int64_t begin, int64_t end) const;
  std::span<const std::byte> bias_bytes(int64_t begin, int64_t end) const;
  /// The rows [begin, end) won't be read soon.
  void release(int64_t begin, int64_t end) const;

  const LinearWeight& weight() const {
    return weight_;
  }

 private:
  using Plane = std::span<const std::byte>;
  void read_affine(int64_t row, float* out) const;
  void read_blocks(int64_t row, float* out) const;

  const LinearWeight& weight_;
  Plane codes_;
  Plane scales_;
  Plane biases_;
};

}  // namespace mlxcel
