#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mlxcel/core/json.h"
#include "mlxcel/loading/detect.h"
#include "mlxcel/loading/estimate/memory_estimate.h"
#include "mlxcel/loading/estimate/recommend_quant.h"
#include "mlxcel/loading/estimate/weight_summary.h"

namespace mlxcel {

/// Everything that a model directory tells without a tensor being read.
struct Inspection {
  std::string directory;
  std::string config_type;  // model_type as it is written, "" without one
  std::vector<std::string> architectures;
  Detection detection;
  int64_t window = 0;  // tokens that the config declares, 0: none

  /// Empty where there are no weights, or not all; `weights_problem` says why.
  std::optional<WeightSummary> weights;
  /// What the model is bound to, where that has other formats than the files.
  std::vector<FormatCount> loaded_formats;
  size_t shards = 0;
  size_t replaced = 0;  // names that a later shard repeats
  std::string weights_problem;
  /// Why the quantisation, as it is declared or stored, can't be loaded, "" if
  /// it can.
  std::string quantization_problem;
  /// Against the family's tensor table, where there is one.
  std::optional<TableDifference> difference;
  std::string table_problem;  // why the family refuses the config

  std::vector<std::string> tokenizer_files;
  std::string chat_template;  // where it comes from, "" if there is none
  std::string template_problem;

  MemoryEstimate memory;
  /// What other quantisations would take, where that was asked for.
  std::optional<std::vector<QuantChoice>> choices;
};

/// Looks at config.json, the files beside it and the headers of the shards.
/// Missing weights are no error; what is broken is.
/// With `recommend_for`, which quantisations fit into that budget.
/// Throws Error as detection and list_tensors() do, with what the directory
/// holds behind it where it can't be identified.
Inspection inspect_directory(
    const std::string& directory,
    const MemoryRequest& request,
    const Budget* recommend_for = nullptr
);

/// What a file that is no model directory is and what to do with it; "" if it
/// is none of the known foreign formats (GGUF, PyTorch pickles, NumPy, ONNX).
/// Reads at most its first bytes.
std::string describe_foreign_file(const std::string& path);

/// The command or server role that a checkpoint is for: "`mlxcel generate -m
/// DIR`", and what stands in the way in this build.
std::string usage_of(const Inspection& inspection);

}  // namespace mlxcel
