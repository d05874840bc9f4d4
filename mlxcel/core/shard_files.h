#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mlxcel {

/// Which files of a model directory hold its weights (design 7), told from
/// names and sizes alone: one rule for loading and for downloads.

inline constexpr std::string_view kShardExtension = ".safetensors";
inline constexpr const char* kShardIndex = "model.safetensors.index.json";

/// The *.safetensors files at the top level of a directory that count as
/// shards. Never counted are hidden files, adapters (adapters.safetensors,
/// adapter_model.safetensors) and, beside others, consolidated*.safetensors,
/// which repeat the weights of the others. Lists are sorted bytewise.
struct ShardFiles {
  std::vector<std::string> whole;   // regular files that hold something
  std::vector<std::string> empty;   // of no bytes: a download that had begun
  std::vector<std::string> broken;  // links to nothing
  std::vector<std::string> adapters;
  std::vector<std::string> all;  // every name in the directory
};
/// Throws Error naming a directory that can't be listed.
ShardFiles find_shard_files(const std::string& directory);

struct ShardPlan {
  std::vector<std::string> present;  // to be read, sorted
  std::vector<std::string> missing;  // sorted; at most some 100,000
  /// The index names files that aren't there, and a file is there that it does
  /// not name: likely a repackaged quantisation. It is not followed.
  bool stale = false;
};
/// What is to be read: the files that the index names (`indexed`, sorted; none:
/// there is no index), or without one and where it is stale all of `files`,
/// which then have to be whole, and of a numbered one
/// (NAME-00001-of-00003.safetensors) its companions as well.
ShardPlan plan_shards(
    const std::string& directory,
    const ShardFiles& files,
    const std::vector<std::string>& indexed
);

/// What is at a shard's name.
enum class ShardState { absent, whole, empty, broken_link, not_a_file };
ShardState shard_state(const std::string& path);

/// No path: a name that stays in its directory.
bool is_plain_file_name(std::string_view name);

/// Files that downloads leave while they are under way, as paths below the
/// directory: ours, those of huggingface_hub (for a snapshot of its cache, the
/// blobs of the repository), of browsers, curl and aria2.
std::vector<std::string> unfinished_downloads(const std::string& directory);

}  // namespace mlxcel
