#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mlxcel {

/// Element types of a SafeTensors file.
enum class DType : uint8_t {
  f64,
  f32,
  f16,
  bf16,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  i64,
  u64,
  i32,
  u32,
  i16,
  u16,
  i8,
  u8,
  boolean,
  c64,
};

/// Bytes of one element.
int64_t dtype_size(DType dtype);
/// The spelling in a SafeTensors header: "F32", "BF16", "F8_E4M3" ...
std::string_view dtype_name(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);
/// f32, f16 or bf16: what a dense weight or a scale may be.
bool is_weight_float(DType dtype);

}  // namespace mlxcel
