#pragma once

#include <string>
#include <vector>

namespace mlxcel::hub {

/// What a model directory holds of what it should.
struct Completeness {
  std::vector<std::string> present;
  std::vector<std::string> missing;
  std::vector<std::string> unfinished;  // what downloads left under way

  bool complete() const {
    return missing.empty();
  }
  /// "missing: a, b; present: c; unfinished: d", long lists cut.
  std::string describe() const;
};

/// config.json must be there, and the weights by the rule of loading
/// (core/shard_files.h) and what a readable index says; an index that is not
/// readable counts as none, loading tells what is wrong with it.
/// Throws Error(io) if the directory can't be listed.
Completeness check_completeness(const std::string& directory);

}  // namespace mlxcel::hub
