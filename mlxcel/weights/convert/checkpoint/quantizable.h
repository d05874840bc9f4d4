#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "mlxcel/weights/tensor_table.h"

namespace mlxcel::convert {

/// Which tensors are linear layers and embeddings, hence quantisable.
class Quantizable {
 public:
  explicit Quantizable(const TensorTable& table);

  /// With a table: its matrices. Without: `.weight` of two dimensions, and of
  /// three in a stack of experts, unless the name says norm, convolution,
  /// router, position or a vision or audio tower.
  bool operator()(const std::string& name, const std::vector<int64_t>& shape)
      const;
  /// Whether the family has a tensor of that name; true without a table.
  bool knows(const std::string& name) const;
  bool has_table() const {
    return !roles_.empty();
  }
  /// The place in the table; past its end if it isn't there.
  size_t order(const std::string& name) const;
  /// The width of a matrix of the table; 0 if unknown.
  int64_t columns(const std::string& name) const;

 private:
  struct Entry {
    TensorRole role;
    size_t order;
    int64_t columns;
  };
  std::unordered_map<std::string, Entry> roles_;
};

}  // namespace mlxcel::convert
