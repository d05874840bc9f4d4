#pragma once

#include <string>

#include "mlxcel/core/json.h"
#include "mlxcel/loading/registry.h"

namespace mlxcel {

/// What a checkpoint is for.
enum class ModelKind {
  generation,
  embedding,
  reranker,
  speech_to_text,
  text_to_speech,
  object_detection,
};

/// What the user wants of it; `automatic` for a plain `-m`.
enum class Task { automatic, embed, rerank, find_objects };

/// What a checkpoint is.
struct Detection {
  ModelType type;
  ModelKind kind;
  /// False for a vision type that loads without its tower or became its text
  /// variant; `tower_reason` says why then.
  bool tower = false;
  std::string tower_reason;
  /// What the user should be told, "" if nothing: a task that was asked for
  /// and that nothing in the checkpoint declares.
  std::string notice;
};

ModelKind kind_of(Category category);
std::string_view kind_name(ModelKind kind);

/// What the checkpoint is, from its config, the files beside it and the names
/// of its tensors. One answer or an Error, never a fallback to another
/// architecture or task: drafters, Kokoro, detectors, foreign heads,
/// cross-encoders, embedders, then `model_type` (detection-and-routing.md
/// 1.2, 0). With an empty `directory` the config alone decides.
/// Throws Error(unsupported) naming what is not supported, Error
/// (invalid_input) naming a field or file that cannot be read.
Detection detect_model(
    const std::string& directory,
    const Json& config,
    Task task = Task::automatic
);

/// Reads config.json and detects. A directory without one is YOLO26 if its
/// tensors say so.
Detection detect_directory(
    const std::string& directory, Task task = Task::automatic
);

/// The architecture of a config without a directory.
ModelType get_model_type(const Json& config);

/// The decoder of a `mistral3` checkpoint: ministral3, mistral4 or llama, by
/// `text_config.model_type`. detection-and-routing.md 3.6.
ModelType mistral3_decoder(const Json& config);

/// Labels of a sequence classifier: rows of its last linear layer, else
/// `num_labels`, else the size of `id2label`, else 1.
int64_t label_count(const std::string& directory, const Json& config);

}  // namespace mlxcel
