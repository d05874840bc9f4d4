#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mlxcel/weights/quantization.h"

namespace mlxcel {

/// The two parts of `kv_b_proj` of one head, in place. From the compressed
/// state c [rank] come keys [nope, rank] c and values [value, rank] c. Kept
/// apart, they are absorbed into the query (q^T K c) and into the output
/// (V (sum p c)), so that attention runs over c (DeepSeek-V2, 2.1.2).
struct MlaHead {
  LinearWeight keys;    // [nope, rank]
  LinearWeight values;  // [value, rank]
};

/// Splits `<path>.weight` [heads * (nope + value), rank] and its planes, each
/// head's keys before its values (weights-and-quantization.md 17). Bits and
/// group follow from the shapes: W * 32 / rank and rank / G.
/// Throws Error as bind_linear() does, naming the path, shapes and
/// kv_lora_rank; 1-bit codes are refused.
std::vector<MlaHead> split_mla_projection(
    const WeightMap& weights,
    const std::string& path,
    int64_t heads,
    int64_t nope,
    int64_t value,
    int64_t rank,
    const QuantConfig& quantization
);

}  // namespace mlxcel
