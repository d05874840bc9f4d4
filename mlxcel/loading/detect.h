#pragma once

#include <string>

#include "mlxcel/core/json.h"
#include "mlxcel/loading/registry.h"

namespace mlxcel {

/// What a checkpoint is for.
enum class ModelKind { generation, embedding, reranker };

/// The kind, from the config's classes and the pooling files beside it.
/// detection-and-routing.md 1.2 (3, 4) and 1.3.
ModelKind model_kind(const std::string& directory, const Json& config);

/// What makes it an embedding checkpoint, for messages; empty if nothing does.
std::string embedding_marker(const std::string& directory, const Json& config);

/// The architecture of a generation checkpoint. Never a fallback: throws
/// Error(unsupported) naming the `model_type` and pointing to `mlxcel arch`,
/// Error(invalid_input) if there is none.
ModelType get_model_type(const Json& config);

}  // namespace mlxcel
