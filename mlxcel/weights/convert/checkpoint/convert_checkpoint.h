#pragma once

#include <functional>
#include <string>

#include "mlxcel/weights/convert/checkpoint/checkpoint_report.h"
#include "mlxcel/weights/convert/checkpoint/plan.h"

namespace mlxcel::convert {

struct CheckpointOptions {
  Action action = Action::keep;
  QuantRecipe recipe;          // of Action::quantize
  std::optional<DType> dtype;  // f32, f16 or bf16
  /// Of the family, where it is known: decides what can be quantised.
  TensorTable table;
  /// As ConvertOptions has it (gguf/convert_gguf.h).
  bool force = false;
  uint64_t shard_bytes = SafetensorsWriter::kShardBytes;
  /// Which tensor is next, and bytes of the source, done and in all.
  std::function<void(const std::string& name, uint64_t done, uint64_t total)>
      progress;
};

/// Quantises, requantises or dequantises a checkpoint directory, or only puts
/// it into MLX's form. Planes are those of MLX's `quantize` on the CPU, bit by
/// bit. Tensor after tensor, on all threads: memory is bounded by the largest
/// tensor of a vendor's format, otherwise by some MiB per thread.
///
/// Everything is written beside the output directory first and moved at the
/// end; a failure leaves nothing behind. Throws Error naming the file and the
/// tensor, or Error(usage) if the output is the input, or holds files and
/// force is off.
CheckpointReport convert_checkpoint(
    const std::string& directory,
    const std::string& out_dir,
    const CheckpointOptions& options
);

}  // namespace mlxcel::convert
