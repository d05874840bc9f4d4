#pragma once

#include <string>
#include <vector>

#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// The shard files of a model directory, sorted bytewise: by the index if
/// there is one, otherwise every top-level *.safetensors. An index is stale
/// (warned, all files taken) only if some shard that is present isn't in it;
/// otherwise missing files mean an incomplete download: the Error lists what
/// is present and what is missing. weights-and-quantization.md 3, design 7.
std::vector<std::string> list_shards(const std::string& directory);

/// All tensors of the directory, memory-mapped, nothing copied.
WeightMap load_weights(const std::string& directory);

/// Bytes of the checkpoint from headers and index alone; 0 if unknown.
uint64_t weight_bytes(const std::string& directory);

}  // namespace mlxcel
