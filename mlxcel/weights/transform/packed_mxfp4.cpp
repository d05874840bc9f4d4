#include "mlxcel/weights/transform/packed_mxfp4.h"

#include <fmt/format.h>

#include "mlxcel/weights/transform/planes_beside.h"

namespace mlxcel {

namespace {

constexpr std::string_view kPacked = ".weight_packed";

[[noreturn]] void reject(
    const std::string& name, const Weight& weight, const std::string& why
) {
  reject_plane("mxfp4", name, weight, why);
}

}  // namespace

int64_t rename_packed_mxfp4(WeightMap& weights) {
  std::vector<std::string> paths = modules_with(weights, kPacked);
  for (const std::string& path : paths) {
    std::string packed_name = path + std::string(kPacked);
    std::string scale_name = path + ".weight_scale";
    Weight packed = weights.at(packed_name);
    const Weight* found = weights.find(scale_name);
    if (found == nullptr) {
      reject(packed_name, packed, "has no .weight_scale beside it");
    }
    Weight scale = *found;
    if (packed.dtype != DType::u8 || packed.shape.size() != 2) {
      reject(packed_name, packed, "expected U8 of two dimensions");
    }
    if (packed.shape[1] % 4 != 0) {
      reject(packed_name, packed, "expected a multiple of 4 bytes in a row");
    }
    bool bytes = scale.dtype == DType::u8 || scale.dtype == DType::f8_e8m0;
    if (!bytes || scale.shape.size() != 2) {
      reject(scale_name, scale, "expected U8 or F8_E8M0 of two dimensions");
    }
    if (scale.shape[0] != packed.shape[0] ||
        scale.shape[1] != packed.shape[1] / 16 || packed.shape[1] % 16 != 0) {
      reject(
          scale_name,
          scale,
          fmt::format(
              "expected a scale for each 32 columns of {} {}",
              packed_name,
              packed.describe()
          )
      );
    }
    packed.dtype = DType::u32;
    packed.shape[1] /= 4;
    scale.dtype = DType::u8;
    weights.insert(path + ".weight", packed);
    weights.insert(path + ".scales", scale);
    weights.erase(packed_name);
    weights.erase(scale_name);
  }
  return static_cast<int64_t>(paths.size());
}

}  // namespace mlxcel
