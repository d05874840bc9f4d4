#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mlxcel/core/json.h"

namespace mlxcel {

/// What a config and the files beside it say, before anything is concluded.

/// `architectures`; "" for an entry that is no string, nothing if it is no
/// list.
std::vector<std::string> architectures(const Json& config);
/// The entry at position 0, "" if there is none.
std::string first_architecture(const Json& config);
bool has_architecture(const Json& config, std::string_view name);
/// A class of late interaction in ColBERT's way.
bool is_colbert(std::string_view name);

/// `model_type` in lower case; "" if it is absent or no string.
std::string lower_model_type(const Json& config);
/// The same with _ for -.
std::string plain_model_type(const Json& config);

/// A count that may be written as a whole float or a string; empty if the key
/// is absent or anything else.
std::optional<int64_t> count_of(const Json& config, std::string_view key);
/// A field that is exactly this boolean.
bool is_flag(const Json& config, std::string_view key, bool value);

/// What says that a config describes a drafter, "" if nothing does.
std::string drafter_marker(const Json& config);

/// The class at position 0 if its head neither generates, embeds, scores
/// pairs nor finds objects as far as this program knows; else "".
std::string foreign_head(const Json& config);

/// What the sentence-transformers files of a directory say.
struct EmbeddingLayout {
  std::string pooling;    // the file that declares a pooling, or ""
  std::string per_token;  // the file that declares one vector per token
  std::string sparse;     // the file that declares sparse vectors
};
/// Unreadable files count for nothing; so does an empty `directory`.
EmbeddingLayout embedding_layout(const std::string& directory);

/// What makes a checkpoint an embedder, "" if nothing does.
/// detection-and-routing.md 1.3 and 0.
std::string embedding_marker(const Json& config, const EmbeddingLayout& layout);

}  // namespace mlxcel
