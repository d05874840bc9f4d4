#pragma once

#include <string>

#include "mlxcel/loading/inspect.h"

namespace mlxcel::apps {

/// What `inspect` was asked, for its report.
struct InspectInputs {
  MemoryRequest memory;
  std::string quant = "default";
  std::string kv_mode = "fp16";
};

/// The report for people: what the checkpoint is, then what it costs.
std::string inspect_text(
    const Inspection& inspection,
    const InspectInputs& inputs,
    const Budget& budget
);

/// The same as one JSON object (docs/inspect.md).
std::string inspect_json(
    const Inspection& inspection,
    const InspectInputs& inputs,
    const Budget& budget
);

}  // namespace mlxcel::apps
