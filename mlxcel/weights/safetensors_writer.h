#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "mlxcel/core/file.h"

namespace mlxcel {

/// A tensor to be written: its name, SafeTensors dtype ("F16", "U32", ...),
/// shape and size in bytes.
struct OutputTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  uint64_t bytes;
};

/// Streams tensors to SafeTensors files as MLX writes them: a header without
/// padding, `__metadata__` {"format": "mlx"}, contiguous offsets. All tensors
/// are known beforehand; their bytes follow in the same order.
class SafetensorsWriter {
 public:
  /// The size at which published MLX checkpoints start another file.
  static constexpr uint64_t kShardBytes = uint64_t{5} << 30;

  /// One file model.safetensors if the tensors fit in `shard_bytes`, else
  /// model-00001-of-0000N.safetensors and model.safetensors.index.json.
  SafetensorsWriter(
      std::string directory,
      std::vector<OutputTensor> tensors,
      uint64_t shard_bytes = kShardBytes
  );

  /// Appends to the current tensor, at most up to its end; the next write goes
  /// to the next tensor then. Throws Error(io) naming the file.
  void write(const void* data, uint64_t count);

  /// Writes a part of any tensor, from any thread; not to be mixed with
  /// write(). Every byte of every tensor is written once.
  void write_at(
      size_t tensor, uint64_t offset, const void* data, uint64_t count
  );

  /// Gives all files their names and writes the index; without it nothing is
  /// left behind. Every tensor must be whole.
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
  void open_file();
  void place_tensors();
  void skip_empty();
  void write_index() const;

  std::string directory_;
  std::vector<OutputTensor> tensors_;
  std::vector<size_t> shard_ends_;  // one past the last tensor of each file
  std::vector<std::string> files_;
  uint64_t total_ = 0;

  std::vector<std::unique_ptr<AtomicFile>> open_;  // committed together
  size_t tensor_ = 0;                              // the one being written
  uint64_t done_ = 0;                              // its bytes written

  struct Place {
    size_t file;
    uint64_t offset;
  };
  std::once_flag placing_;
  std::vector<Place> places_;  // of write_at()
  std::atomic<uint64_t> placed_ = 0;
};

/// The header of a SafeTensors file that holds these tensors: 8 bytes of
/// length and the JSON text.
std::string safetensors_header(const OutputTensor* tensors, size_t count);

}  // namespace mlxcel
