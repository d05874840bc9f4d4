#include "mlxcel/weights/transform/fp8_blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/core/numbers.h"
#include "mlxcel/core/thread_pool.h"
#include "mlxcel/weights/small_floats.h"
#include "mlxcel/weights/transform/lazy_planes.h"
#include "mlxcel/weights/transform/planes_beside.h"

namespace mlxcel {

namespace {

constexpr int64_t kBlock = 128;
constexpr int64_t kGroup = 32;
constexpr std::string_view kSidecar = ".weight_scale_inv";

[[noreturn]] void reject(
    const std::string& name, const Weight& weight, const std::string& why
) {
  reject_plane("fp8", name, weight, why);
}

void check_pair(
    const std::string& name,
    const Weight& weight,
    const std::string& sidecar_name,
    const Weight& sidecar
) {
  if (weight.shape.size() != 2) {
    reject(name, weight, "expected two dimensions");
  }
  if (weight.dtype != DType::u8 && weight.dtype != DType::f8_e4m3) {
    reject(name, weight, "expected F8_E4M3 or U8");
  }
  int64_t rows = weight.shape[0];
  int64_t cols = weight.shape[1];
  if (rows <= 0 || cols <= 0 || cols % kGroup != 0) {
    reject(name, weight, fmt::format("{} columns are no multiple of 32", cols));
  }
  std::vector<int64_t> blocks = {
      ceil_div(rows, kBlock), ceil_div(cols, kBlock)};
  if (sidecar.shape != blocks) {
    reject(
        sidecar_name,
        sidecar,
        fmt::format(
            "expected [{}] beside {} {}",
            fmt::join(blocks, ", "),
            name,
            weight.describe()
        )
    );
  }
  if (!is_weight_float(sidecar.dtype)) {
    reject(sidecar_name, sidecar, "expected F32, F16 or BF16");
  }
}

// inputs: weight and sidecar.
void requantize(
    const std::vector<Weight>& inputs, const std::vector<std::byte*>& planes
) {
  int64_t rows = inputs[0].shape[0];
  int64_t cols = inputs[0].shape[1];
  int64_t width = inputs[1].shape[1];
  const std::byte* bytes = inputs[0].bytes().data();
  std::vector<float> scales = to_float(inputs[1]);
  const auto& table = e4m3_values();
  ThreadPool::instance()
      .parallel_for(rows, 16, [&](int64_t begin, int64_t end) {
        std::vector<float> row(static_cast<size_t>(cols));
        for (int64_t r = begin; r < end; ++r) {
          const float* scale = scales.data() + r / kBlock * width;
          const std::byte* from = bytes + r * cols;
          for (int64_t c = 0; c < cols; ++c) {
            row[static_cast<size_t>(c)] =
                table[static_cast<uint8_t>(from[c])] * scale[c / kBlock];
          }
          quantize_mxfp8(
              row, planes[0] + r * cols, planes[1] + r * (cols / kGroup)
          );
        }
      });
}

}  // namespace

int64_t convert_fp8_blocks(WeightMap& weights) {
  std::vector<std::string> paths = modules_with(weights, kSidecar);
  for (const std::string& path : paths) {
    std::string name = path + ".weight";
    std::string sidecar_name = path + std::string(kSidecar);
    Weight sidecar = weights.at(sidecar_name);
    const Weight* found = weights.find(name);
    if (found == nullptr) {
      reject(sidecar_name, sidecar, "has no weight beside it");
    }
    Weight weight = *found;
    check_pair(name, weight, sidecar_name, sidecar);
    int64_t rows = weight.shape[0];
    int64_t cols = weight.shape[1];
    auto sources = lazy_planes(
        {weight, sidecar}, {rows * cols, rows * cols / kGroup}, requantize
    );
    weights.insert(
        name, {DType::u32, {rows, cols / 4}, weight.component, sources[0]}
    );
    weights.insert(
        path + ".scales",
        {DType::u8, {rows, cols / kGroup}, weight.component, sources[1]}
    );
    weights.erase(sidecar_name);
  }
  return static_cast<int64_t>(paths.size());
}

}  // namespace mlxcel
