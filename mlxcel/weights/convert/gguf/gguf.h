#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"

namespace mlxcel::convert {

/// Types of GGUF metadata values, with the numbers of the format.
enum class GgufType : uint32_t {
  uint8 = 0,
  int8 = 1,
  uint16 = 2,
  int16 = 3,
  uint32 = 4,
  int32 = 5,
  float32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  uint64 = 10,
  int64 = 11,
  float64 = 12,
};

/// The tensor types that are read, with the numbers of the format.
enum class GgmlType : uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  bf16 = 30,
};

/// How a tensor type is stored: `elements` values in `bytes` bytes.
struct BlockLayout {
  const char* name;
  int64_t elements;
  int64_t bytes;
};
const BlockLayout& block_layout(GgmlType type);

/// One metadata value. `data` points into the mapped file: `count` numbers or
/// booleans, little-endian, unaligned.
struct GgufValue {
  GgufType type;     // array for an array
  GgufType element;  // of the array, else the same as type
  uint64_t count = 1;
  const std::byte* data = nullptr;
  std::vector<std::string_view> strings;  // instead of data, if strings
};

struct GgufTensor {
  std::string name;
  GgmlType type;
  std::vector<int64_t> shape;  // row-major: [out, in]
  uint64_t offset;             // in the file, bytes
  uint64_t bytes;

  int64_t columns() const {
    return shape.back();
  }
  int64_t rows() const;
};

/// A GGUF file, versions 2 and 3, little-endian. Everything that the header
/// says is checked against the file's size before it is used. The format:
/// ggml's docs/gguf.md; the refusals follow ggml's own reader.
class GgufFile {
 public:
  /// Throws Error naming the file and the field at fault.
  static GgufFile open(const std::string& path);

  const std::string& path() const {
    return file_->path();
  }
  uint32_t version() const {
    return version_;
  }
  const MappedFile& file() const {
    return *file_;
  }

  const std::map<std::string, GgufValue, std::less<>>& metadata() const {
    return metadata_;
  }
  const GgufValue* find(std::string_view key) const;

  /// Typed reading; empty if the key is absent. Each throws
  /// Error(invalid_input) naming the key if it has another type or range.
  std::optional<int64_t> find_int(
      std::string_view key, int64_t min, int64_t max
  ) const;
  std::optional<double> find_number(std::string_view key) const;
  std::optional<bool> find_bool(std::string_view key) const;
  std::optional<std::string> find_string(std::string_view key) const;
  /// An array of strings, of int32, of float32 or of uint8; empty if absent.
  std::span<const std::string_view> strings(std::string_view key) const;
  std::vector<int32_t> ints(std::string_view key) const;
  std::vector<float> floats(std::string_view key) const;
  std::string_view bytes(std::string_view key) const;

  /// The same, where the key must be there.
  int64_t need_int(std::string_view key, int64_t min, int64_t max) const;
  double need_number(std::string_view key) const;
  std::string need_string(std::string_view key) const;

  const std::vector<GgufTensor>& tensors() const {
    return tensors_;
  }
  const GgufTensor* find_tensor(std::string_view name) const;
  const std::byte* data(const GgufTensor& tensor) const {
    return file_->bytes().data() + tensor.offset;
  }

  /// Throws Error: `[gguf] field: message (in PATH)`.
  [[noreturn]] void reject(
      const std::string& field,
      const std::string& message,
      ErrorCode code = ErrorCode::invalid_input
  ) const;

 private:
  GgufFile() = default;
  const GgufValue& array_of(
      std::string_view key, const GgufValue& value, GgufType element
  ) const;

  std::shared_ptr<MappedFile> file_;
  uint32_t version_ = 0;
  std::map<std::string, GgufValue, std::less<>> metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, size_t, std::less<>> tensor_index_;
};

}  // namespace mlxcel::convert
