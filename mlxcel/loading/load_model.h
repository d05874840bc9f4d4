#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mlxcel/backend/factory.h"
#include "mlxcel/core/json.h"
#include "mlxcel/loading/generation_defaults.h"
#include "mlxcel/loading/preparation.h"
#include "mlxcel/loading/registry.h"
#include "mlxcel/models/language_model.h"
#include "mlxcel/tokenizer/tokenizer.h"
#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// A model that can generate. Engine, server and commands see only this and
/// the capabilities they ask for.
struct LoadedModel {
  ModelType type;
  std::string directory;
  Json config;
  std::shared_ptr<backend::Backend> backend;
  std::unique_ptr<LanguageModel> model;

  /// The model as something that it can also do, or null.
  template <typename Capability>
  Capability* as() const {
    return dynamic_cast<Capability*>(model.get());
  }
};

/// What a model directory gives: the model and what belongs to it.
struct Checkpoint {
  LoadedModel model;
  /// Null if LoadOptions::tokenizer was false.
  std::shared_ptr<const Tokenizer> tokenizer;
  GenerationDefaults defaults;
  int64_t context_window = 0;  // tokens; 0: not declared
  double load_seconds = 0;
};

struct LoadRequest;

struct LoadOptions {
  backend::BackendChoice backend;
  /// Whether a tokenizer is needed; without, the directory may lack one.
  bool tokenizer = true;
  /// Run on the tensors before they are bound (loading/preparation.h).
  std::vector<WeightEdit> edits;
  /// Called when it is known what the checkpoint is and no weight is read yet;
  /// an exception ends the load. The function that it gets waits for the
  /// tokenizer, which is read meanwhile, if `tokenizer` says so.
  std::function<
      void(const LoadRequest& checkpoint, const std::function<const Tokenizer&()>&)>
      before_weights;
};

/// Directory route: path → config → kind → type → policy → loader, inside a
/// materialisation scope. `path` is a model directory or a file in one.
/// Throws Error naming what is at fault.
Checkpoint load_model(const std::string& path, const LoadOptions& options);

/// Weight route: builds the model from tensors that are in memory. Refuses
/// families without the route, with their message.
LoadedModel load_model_from_weights(
    const std::string& path, WeightMap weights, const LoadOptions& options
);

/// The model directory that a path means.
std::string model_directory(const std::string& path);

}  // namespace mlxcel
