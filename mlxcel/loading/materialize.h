#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "mlxcel/backend/backend.h"
#include "mlxcel/models/language_model.h"

namespace mlxcel {

/// When weights become resident.
enum class Materialization { eager, lazy };

/// MLXCEL_WEIGHT_MATERIALIZATION: `lazy` or the default; another value is a
/// warning and the default.
Materialization materialization_mode();

struct MaterializeReport {
  Materialization mode = Materialization::eager;
  double construct = 0;    // seconds
  double materialize = 0;  // seconds
  backend::Resident resident;
};

/// Runs a family's loader, then makes the weights that the model kept
/// resident, so that the first token waits for no weight. Dropped tensors are
/// never read. Throws what the loader or the read throws.
std::unique_ptr<LanguageModel> with_weight_materialization(
    backend::Backend& backend,
    const std::function<std::unique_ptr<LanguageModel>()>& load,
    MaterializeReport& report
);

}  // namespace mlxcel
