#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mlxcel/weights/dtype.h"

namespace mlxcel {

class MappedFile;

/// Where the bytes of a weight come from: an extent of a mapped file, a buffer
/// in memory, or a transform of other weights that runs when first asked.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  /// The bytes, at any alignment, valid while the source lives. May compute
  /// (once, thread-safe). Throws Error naming the file.
  virtual std::span<const std::byte> bytes() const = 0;
  /// "model.safetensors": for messages.
  virtual std::string origin() const = 0;
  /// The bytes are not needed for now: memory that can be had again may go.
  virtual void release() const {}
  /// True once a page of the file could not be read (core/file.h).
  virtual bool faulted() const {
    return false;
  }
  /// The file that the bytes are read from whenever they are used; null if
  /// they are in memory.
  virtual std::shared_ptr<const MappedFile> file() const {
    return nullptr;
  }
};

std::shared_ptr<const WeightSource> buffer_source(
    std::vector<std::byte> bytes, std::string origin
);

/// Whether a weight belongs to the decoder or to a vision or audio tower,
/// which may be prepared late.
enum class Component : uint8_t { core, tower };

/// One tensor of a checkpoint: a handle, cheap to copy.
struct Weight {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  Component component = Component::core;
  std::shared_ptr<const WeightSource> source;

  int64_t elements() const;
  std::span<const std::byte> bytes() const {
    return source->bytes();
  }
  /// "[49152, 72] U32".
  std::string describe() const;
};

/// Row-major float32 copy of a dense f32, f16 or bf16 weight.
std::vector<float> to_float(const Weight& weight);

/// The tensors of a checkpoint by name, sorted bytewise.
class WeightMap {
  using Map = std::map<std::string, Weight, std::less<>>;

 public:
  bool contains(std::string_view name) const {
    return weights_.contains(name);
  }
  /// Null if there is none.
  const Weight* find(std::string_view name) const;
  /// Throws Error(not_found) naming the tensor and the directory.
  const Weight& at(std::string_view name) const;
  void insert(std::string name, Weight weight);
  void erase(const std::string& name);
  /// Hands over the tensors whose name satisfies `wanted`, in order.
  std::vector<std::pair<std::string, Weight>> take_if(
      const std::function<bool(std::string_view name)>& wanted
  );
  /// Gives the tensor another name; the old one must exist.
  void rename(const std::string& from, std::string to);
  size_t size() const {
    return weights_.size();
  }
  Map::const_iterator begin() const {
    return weights_.begin();
  }
  Map::const_iterator end() const {
    return weights_.end();
  }

  /// Where the tensors came from, for messages: the model directory.
  std::string origin;

 private:
  Map weights_;
};

}  // namespace mlxcel
