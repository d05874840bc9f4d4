#include "mlxcel/weights/dtype.h"

#include <array>

namespace mlxcel {

namespace {

struct Row {
  DType dtype;
  int64_t size;
  std::string_view name;
};

constexpr std::array kTypes = {
    Row{DType::f64, 8, "F64"},
    Row{DType::f32, 4, "F32"},
    Row{DType::f16, 2, "F16"},
    Row{DType::bf16, 2, "BF16"},
    Row{DType::f8_e4m3, 1, "F8_E4M3"},
    Row{DType::f8_e5m2, 1, "F8_E5M2"},
    Row{DType::f8_e8m0, 1, "F8_E8M0"},
    Row{DType::i64, 8, "I64"},
    Row{DType::u64, 8, "U64"},
    Row{DType::i32, 4, "I32"},
    Row{DType::u32, 4, "U32"},
    Row{DType::i16, 2, "I16"},
    Row{DType::u16, 2, "U16"},
    Row{DType::i8, 1, "I8"},
    Row{DType::u8, 1, "U8"},
    Row{DType::boolean, 1, "BOOL"},
    Row{DType::c64, 8, "C64"},
};

constexpr bool in_order() {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (static_cast<size_t>(kTypes[i].dtype) != i) {
      return false;
    }
  }
  return kTypes.size() == static_cast<size_t>(DType::c64) + 1;
}
static_assert(in_order(), "one row per DType, in its order");

}  // namespace

int64_t dtype_size(DType dtype) {
  return kTypes[static_cast<size_t>(dtype)].size;
}

std::string_view dtype_name(DType dtype) {
  return kTypes[static_cast<size_t>(dtype)].name;
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const Row& row : kTypes) {
    if (row.name == name) {
      return row.dtype;
    }
  }
  return std::nullopt;
}

bool is_weight_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

}  // namespace mlxcel
