#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mlxcel/backend/backend.h"
#include "mlxcel/core/json.h"
#include "mlxcel/loading/preparation.h"
#include "mlxcel/loading/registry.h"

namespace mlxcel {

/// What every loader gets: a detected checkpoint and where it shall run.
struct LoadRequest {
  std::string directory;
  Json config;  // sanitised, of the whole checkpoint
  const Descriptor& entry;
  std::shared_ptr<backend::Backend> backend;
  std::vector<WeightEdit> edits;

  Preparation preparation() const {
    return {backend->device(), entry.keeps_bf16, edits};
  }
};

}  // namespace mlxcel
