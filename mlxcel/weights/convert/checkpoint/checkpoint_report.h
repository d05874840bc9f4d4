#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mlxcel/weights/convert/checkpoint/tensor_writer.h"

namespace mlxcel::convert {

struct TensorReport {
  std::string name;
  std::vector<int64_t> shape;  // of the values
  std::string source;          // "bf16", "affine 4-bit group 64"
  std::string target;
  uint64_t source_bytes = 0;
  uint64_t target_bytes = 0;
  TensorError error;
  std::string left_dense;  // why it could be quantised and isn't
};

struct CheckpointReport {
  std::vector<TensorReport> tensors;
  std::vector<std::string> files;
  std::vector<std::string> notes;
  double seconds = 0;

  /// Formats, sizes, errors and the worst tensors, for people.
  std::string describe() const;
  /// Everything.
  std::string json() const;
};

}  // namespace mlxcel::convert
