#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mlxcel/weights/safetensors_writer.h"

namespace mlxcel::convert {

struct ConvertOptions {
  /// Quantised tensors are decoded and written as float16.
  bool dense = false;
  /// Writes into an output directory that holds files already: its model
  /// files are replaced, everything else in it is left alone.
  bool force = false;
  /// Writes only what belongs to the tokenizer; the file need not hold a
  /// model.
  bool tokenizer_only = false;
  /// Bytes of tensors per SafeTensors file.
  uint64_t shard_bytes = SafetensorsWriter::kShardBytes;
};

/// What became of the tensors of one GGUF type.
struct TypeReport {
  std::string source;  // "Q4_1"
  std::string target;  // "affine 4-bit, float16 scales"
  int64_t tensors = 0;
  uint64_t source_bytes = 0;
  uint64_t target_bytes = 0;
  /// sqrt(sum (written - source)^2 / sum source^2) over the values; 0 if
  /// every value is kept.
  double relative_rms = 0;
};

struct ConvertReport {
  std::string architecture;  // general.architecture
  std::string model_type;    // of config.json; empty without a model
  int64_t tokens = 0;        // of the tokenizer
  int64_t tensors = 0;       // of the GGUF file
  uint64_t parameters = 0;
  uint64_t source_bytes = 0;   // of the GGUF file
  uint64_t written_bytes = 0;  // of all tensors
  std::vector<TypeReport> types;
  std::vector<std::string> files;  // written, in the output directory
  std::vector<std::string> notes;  // what was not carried over
  double seconds = 0;

  /// The report as lines of text for people.
  std::string describe() const;
};

/// Converts a GGUF file to a directory that loads like a published MLX
/// checkpoint: config.json, SafeTensors, tokenizer and chat template.
///
/// Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0 become affine groups of 32 without loss;
/// Q4_K and Q5_K keep their codes and Q6_K becomes 8-bit, each with its error
/// in the report. F16 and BF16 stay; F32 is narrowed where that loses nothing.
///
/// Everything is written beside the output directory first and moved at the
/// end; a failure leaves nothing behind. Throws Error naming the file and
/// field at fault, or Error(usage) if `out_dir` holds files and force is off.
ConvertReport convert_gguf(
    const std::string& file,
    const std::string& out_dir,
    const ConvertOptions& options = {}
);

}  // namespace mlxcel::convert
