#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mlxcel/weights/quantization.h"
#include "mlxcel/weights/tensor_listing.h"
#include "mlxcel/weights/tensor_table.h"

namespace mlxcel {

/// Tensors of one format. A quantised matrix counts once; its planes belong to
/// it.
struct FormatCount {
  std::string format;  // "affine 4-bit group 64", "bf16"
  size_t tensors = 0;
  uint64_t bytes = 0;
};

struct WeightSummary {
  uint64_t bytes = 0;  // of all tensors
  size_t tensors = 0;  // as stored, planes included
  uint64_t parameters = 0;
  /// Why `parameters` isn't all of them: matrices whose width the file does not
  /// tell; "" if it is.
  std::string parameters_note;
  std::vector<FormatCount> formats;  // most bytes first
};

/// Counts what the headers say. Bits and group of a quantised matrix follow
/// from its shapes and from its width where `table` knows it, else from the
/// declared group. `declared` and `table` may be null.
WeightSummary summarize_weights(
    const TensorListing& listing,
    const QuantConfig* declared,
    const TensorTable* table
);

/// Values of the table's tensors that the checkpoint has, as many as they are
/// without quantisation; those of a tied head count once.
uint64_t count_parameters(const TensorTable& table, const WeightMap& weights);

/// The tensors of a table as a checkpoint of that quantisation would store
/// them: what `synth` writes, and what a config alone promises.
TensorListing imagine_tensors(
    const TensorTable& table, const QuantConfig& quantization, DType dtype
);

}  // namespace mlxcel
