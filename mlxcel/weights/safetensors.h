#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mlxcel/core/file.h"
#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// One entry of a SafeTensors header; offsets are absolute in the file.
struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// Reads and verifies a SafeTensors header: the contract of withstand.md
/// (length, UTF-8, no duplicate names, no other fields, offsets contiguous
/// from 0 to the end of the file, checked products, at most 16 dimensions).
/// Nothing of the payload is read. Entries come in the order of the payload.
/// `__metadata__: null`, which MLX writes, counts as none.
/// Throws Error(invalid_input) naming the file and the tensor.
std::vector<TensorEntry> read_safetensors_header(
    std::span<const std::byte> file, const std::string& path
);

/// Adds every tensor of the file, mapped and not copied, to `weights`. A name
/// that is there already is replaced; if its shape differs a warning tells
/// the name, both files and both shapes.
/// Throws Error(unsupported) for F64 and F8_E5M2, naming file and tensor.
void load_safetensors(const std::string& path, WeightMap& weights);

}  // namespace mlxcel
