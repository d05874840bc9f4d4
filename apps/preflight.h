#pragma once

#include <string>

#include "mlxcel/loading/estimate/memory_estimate.h"
#include "mlxcel/loading/estimate/recommend_quant.h"

namespace CLI {
class App;
}

namespace mlxcel::apps {

/// The breakdown of an estimate, one line each, and the verdict.
std::string memory_text(
    const MemoryEstimate& estimate,
    const MemoryRequest& request,
    const Budget& budget
);
/// Which quantisations would fit, one line each, and the one that loses least.
std::string recommendation_text(
    const std::vector<QuantChoice>& choices,
    const MemoryRequest& request,
    const Budget& budget
);
/// "1.50 GiB (1610612736 bytes)".
std::string exact_size(uint64_t bytes);

/// Whether a model fits, asked before its weights are loaded.
struct Preflight {
  bool estimate = false;   // print the breakdown and, after loading, compare
  bool force = false;      // a model that does not fit is a warning
  bool recommend = false;  // say which quantisations would fit

  /// --estimate-memory, --recommend-quant, --force and --no-memory-check.
  void add_to(CLI::App& command);
  /// Prints the breakdown where it was asked for or does not fit. Throws
  /// Error(out_of_memory) naming total, available and excess if it does not
  /// fit and isn't forced; an estimate that is unknown passes.
  void judge(
      const CheckpointOutline& checkpoint,
      const MemoryEstimate& measured,
      const MemoryRequest& request
  ) const;
};

/// One line that holds an estimate against what is resident now.
std::string compare_with_resident(const MemoryEstimate& estimate);

}  // namespace mlxcel::apps
