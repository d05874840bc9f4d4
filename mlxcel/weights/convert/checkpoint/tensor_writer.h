#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "mlxcel/weights/convert/checkpoint/plan.h"
#include "mlxcel/weights/safetensors_writer.h"

namespace mlxcel::convert {

/// What was written, as a reader gets it, against what was there.
struct TensorError {
  double error = 0;         // sum of squares of the differences
  double value = 0;         // sum of squares of the source
  float largest_error = 0;  // max |difference|
  float largest_value = 0;  // max |source|

  void add(const TensorError& other);
  /// sqrt(error / value); 0 if every value is 0.
  double relative_rms() const;
};

/// The tensors of the output that a planned one becomes: one, or weight,
/// scales and, if affine, biases.
std::vector<OutputTensor> output_tensors(const PlannedTensor& tensor);

/// Converts the tensor on all threads and writes it as entries `first` and
/// following of the writer. `progress` gets bytes of the source. Throws
/// Error(invalid_input) naming the tensor and file for a value that isn't
/// finite where it is to be quantised, or does not fit its new type;
/// Error(io) for a file that can't be read or written.
TensorError write_tensor(
    const PlannedTensor& tensor,
    size_t first,
    SafetensorsWriter& writer,
    const std::function<void(uint64_t bytes)>& progress
);

}  // namespace mlxcel::convert
