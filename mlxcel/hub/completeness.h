#pragma once

#include <string>
#include <vector>

namespace mlxcel::hub {

/// What a model directory holds of what it should.
struct Completeness {
  std::vector<std::string> present;
  std::vector<std::string> missing;

  bool complete() const {
    return missing.empty();
  }
  /// "missing: a, b; present: c", long lists cut.
  std::string describe() const;
};

/// config.json must be there, and the weights (empty files count as missing):
/// - with a readable model.safetensors.index.json every shard that it names,
///   unless a shard is present that it doesn't name: then the index is stale;
/// - otherwise one *.safetensors file, and of a numbered one
///   (NAME-00001-of-00003) all its companions.
/// Which files count as shards is as for loading (weights/shards.h).
/// Throws Error(io) if the directory can't be listed.
Completeness check_completeness(const std::string& directory);

}  // namespace mlxcel::hub
