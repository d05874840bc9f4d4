#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mlxcel/core/file.h"

namespace mlxcel::convert {

/// A tensor to be written: its name, SafeTensors dtype ("F16", "U32", ...),
/// shape and size in bytes.
struct TensorEntry {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  uint64_t bytes;
};

/// Streams tensors to SafeTensors files as MLX writes them: a header without
/// padding, `__metadata__` {"format": "mlx"}, contiguous offsets. All entries
/// are known beforehand; their bytes follow in the same order.
class SafetensorsWriter {
 public:
  /// The size at which published MLX checkpoints start another file.
  static constexpr uint64_t kShardBytes = uint64_t{5} << 30;

  /// One file model.safetensors if the tensors fit in `shard_bytes`, else
  /// model-00001-of-0000N.safetensors and model.safetensors.index.json.
  SafetensorsWriter(
      std::string directory,
      std::vector<TensorEntry> entries,
      uint64_t shard_bytes = kShardBytes
  );

  /// Appends to the current entry, at most up to its end; the next write goes
  /// to the next entry then. Throws Error(io) naming the file.
  void write(const void* data, uint64_t count);

  /// Commits the last file and writes the index. Every entry must be whole.
  void finish();

  /// Names of the SafeTensors files.
  const std::vector<std::string>& files() const {
    return files_;
  }
  /// Bytes of all tensors.
  uint64_t total_bytes() const {
    return total_;
  }

 private:
  void next_file();
  void write_index() const;

  std::string directory_;
  std::vector<TensorEntry> entries_;
  std::vector<size_t> shard_ends_;  // one past the last entry of each file
  std::vector<std::string> files_;
  uint64_t total_ = 0;

  std::unique_ptr<AtomicFile> file_;
  size_t shard_ = 0;   // files opened so far
  size_t entry_ = 0;   // the entry being written
  uint64_t done_ = 0;  // its bytes written
};

/// The header of a SafeTensors file that holds these entries: 8 bytes of
/// length and the JSON text.
std::string safetensors_header(const TensorEntry* entries, size_t count);

}  // namespace mlxcel::convert
