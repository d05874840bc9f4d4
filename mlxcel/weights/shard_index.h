#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mlxcel {

struct IndexedTensor {
  std::string_view tensor;
  std::string_view shard;
};

/// model.safetensors.index.json.
struct ShardIndex {
  std::string path;
  std::shared_ptr<const void> text;    // what the views below lie in
  std::vector<IndexedTensor> tensors;  // as they stand, each once
  std::vector<std::string> shards;     // sorted, each once, plain file names
  uint64_t total_size = 0;             // 0 if it does not say
};

/// Null if the directory has no index. Throws Error naming the index: not
/// JSON, no weight_map, a tensor twice, a shard that is no plain file name.
std::unique_ptr<ShardIndex> read_shard_index(const std::string& directory);

}  // namespace mlxcel
