#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "mlxcel/core/error.h"
#include "mlxcel/weights/quantization.h"
#include "mlxcel/weights/weight_map.h"

namespace mlxcel::test {

/// An empty directory that goes away with its contents.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const {
    return path_;
  }
  /// Writes a file and gives its path.
  std::string write(const std::string& name, std::string_view bytes) const;
  std::string at(const std::string& name) const {
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

/// The warnings logged while it lives.
class LogCapture {
 public:
  LogCapture();
  ~LogCapture();
  static const std::vector<std::string>& lines();
  static int count(std::string_view part);
};

struct FileTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

/// Length, header text and payload as they stand, right or wrong.
std::string raw_file(const std::string& header, const std::string& payload);
/// A well-formed file; `padding` spaces end the header.
std::string safetensors_file(
    const std::vector<FileTensor>& tensors, size_t padding = 0
);

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  return bytes;
}

/// A weight whose bytes start `offset` past an aligned address.
Weight weight_at_offset(
    DType dtype, std::vector<int64_t> shape, std::string bytes, size_t offset
);
template <typename T>
Weight make_weight(
    DType dtype, std::vector<int64_t> shape, const std::vector<T>& values
) {
  return weight_at_offset(dtype, std::move(shape), bytes_of(values), 0);
}

/// Expects Error(code) with every part in its message.
void expect_error(
    const std::function<void()>& action,
    ErrorCode code,
    const std::vector<std::string>& parts
);

}  // namespace mlxcel::test
