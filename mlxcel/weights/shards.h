#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mlxcel/weights/tensor_listing.h"
#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// The shard files of a model directory as full paths, sorted bytewise by
/// name: by model.safetensors.index.json if there is one, otherwise every
/// top-level *.safetensors (weights-and-quantization.md 3, design 7). Which
/// files count, when an index is stale (warned, all files taken) and what is
/// missing is the rule of core/shard_files.h.
/// - An incomplete download is an Error that lists what is present, missing
///   and unfinished. Empty files and links to nothing are missing.
/// - A name that is no plain file name is an Error, whatever else is there.
/// - A link may lead to a file inside the directory or to a blob of a Hugging
///   Face cache (core/containment.h); another is refused, a broken one that no
///   index names is skipped with a warning.
/// Throws Error naming the directory, the index or the file.
std::vector<std::string> list_shards(const std::string& directory);

/// The names of all tensors, sorted, from the index or, where it is stale or
/// there is none, from the headers; an incomplete download still has those of
/// its index. Empty if there is neither an index nor a shard.
/// Throws Error naming the index or the shard that cannot be read, or the
/// directory of an incomplete download without an index.
std::optional<std::vector<std::string>> tensor_names(
    const std::string& directory
);

/// The shape of a tensor from the header of its shard; empty if no shard that
/// is present has it. Throws Error naming the shard.
std::optional<std::vector<int64_t>> tensor_shape(
    const std::string& directory, std::string_view name
);

/// All tensors of the directory, memory-mapped, nothing copied.
/// Throws Error naming a tensor that the index promises and no shard has.
WeightMap load_weights(const std::string& directory);

/// Bytes of the tensors from the headers of the shards, or from the index's
/// total_size where a header cannot be read; 0 if unknown. Never throws Error.
uint64_t weight_bytes(const std::string& directory);

/// The tensors that load_weights() would map, found in the same way and with
/// the same errors, those of the headers included.
TensorListing list_tensors(const std::string& directory);

}  // namespace mlxcel
