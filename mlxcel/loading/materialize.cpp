#include "mlxcel/loading/materialize.h"

#include <algorithm>
#include <cctype>

#include "mlxcel/core/log.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/text.h"

namespace mlxcel {

Materialization materialization_mode() {
  constexpr const char* kName = "MLXCEL_WEIGHT_MATERIALIZATION";
  const char* value = os::environment(kName);
  std::string mode = value == nullptr ? "" : value;
  std::erase_if(mode, [](unsigned char c) { return std::isspace(c) != 0; });
  mode = ascii_lower(mode);
  if (mode == "lazy") {
    return Materialization::lazy;
  }
  if (!mode.empty() && mode != "eager") {
    log_warning(
        std::string(kName) + ": unknown value \"" + value + "\", using eager"
    );
  }
  return Materialization::eager;
}

std::unique_ptr<LanguageModel> with_weight_materialization(
    backend::Backend& backend,
    const std::function<std::unique_ptr<LanguageModel>()>& load,
    MaterializeReport& report
) {
  double start = os::now();
  std::unique_ptr<LanguageModel> model = load();
  double built = os::now();
  report.construct = built - start;
  report.mode = materialization_mode();
  if (report.mode == Materialization::eager) {
    report.resident = backend.materialize();
  }
  report.materialize = os::now() - built;
  return model;
}

}  // namespace mlxcel
