#include "mlxcel/weights/transform/bitnet.h"

#include <fmt/format.h>

#include <cstring>

#include "mlxcel/core/numbers.h"
#include "mlxcel/core/thread_pool.h"
#include "mlxcel/weights/transform/lazy_planes.h"
#include "mlxcel/weights/transform/planes_beside.h"

namespace mlxcel {

namespace {

constexpr std::string_view kSidecar = ".weight_scale";

[[noreturn]] void reject(
    const std::string& name, const Weight& weight, const std::string& why
) {
  reject_plane("bitnet", name, weight, why);
}

// Words of sixteen codes of a row, low end first.
void unpack_rows(const Weight& packed, std::byte* codes) {
  int64_t quarter = packed.shape[0];
  int64_t cols = packed.shape[1];
  const std::byte* bytes = packed.bytes().data();
  auto convert = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const std::byte* from = bytes + row % quarter * cols;
      int shift = static_cast<int>(2 * (row / quarter));
      std::byte* to = codes + row * (cols / 4);
      for (int64_t c = 0; c < cols; c += 4) {
        unsigned byte = 0;
        for (int64_t i = 0; i < 4; ++i) {
          unsigned code = (static_cast<unsigned>(from[c + i]) >> shift) & 3;
          byte |= code << (2 * i);
        }
        to[c / 4] = static_cast<std::byte>(byte);
      }
    }
  };
  ThreadPool::instance().parallel_for(4 * quarter, 64, convert);
}

void fill(std::byte* plane, int64_t count, float value) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(plane + 4 * i, &value, 4);
  }
}

}  // namespace

int64_t convert_bitnet(WeightMap& weights, bool scale_multiplies) {
  std::vector<std::string> paths = modules_with(weights, kSidecar);
  for (const std::string& path : paths) {
    std::string name = path + ".weight";
    std::string sidecar_name = path + std::string(kSidecar);
    Weight sidecar = weights.at(sidecar_name);
    const Weight* found = weights.find(name);
    if (found == nullptr) {
      reject(sidecar_name, sidecar, "has no weight beside it");
    }
    Weight packed = *found;
    if (packed.dtype != DType::u8 || packed.shape.size() != 2) {
      reject(name, packed, "expected U8 of two dimensions");
    }
    if (!is_weight_float(sidecar.dtype) || sidecar.elements() != 1) {
      reject(sidecar_name, sidecar, "expected one F32, F16 or BF16");
    }
    int64_t rows = packed.shape[0];
    int64_t cols = packed.shape[1];
    if (rows <= 0 || rows > INT64_MAX / 4 || cols <= 0 || cols % 32 != 0) {
      reject(
          name, packed, fmt::format("{} columns are no multiple of 32", cols)
      );
    }
    rows *= 4;
    int64_t group = cols % 128 == 0 ? 128 : cols % 64 == 0 ? 64 : 32;
    int64_t groups = rows * (cols / group);
    auto sources = lazy_planes(
        {packed, sidecar},
        {rows * cols / 4, 4 * groups, 4 * groups},
        [=](const std::vector<Weight>& inputs,
            const std::vector<std::byte*>& planes) {
          unpack_rows(inputs[0], planes[0]);
          float scale = to_float(inputs[1])[0];
          scale = scale_multiplies ? scale : 1.0f / scale;
          fill(planes[1], groups, scale);
          fill(planes[2], groups, -scale);
        }
    );
    std::vector<int64_t> shape = {rows, cols / group};
    Component component = packed.component;
    weights.insert(
        name, {DType::u32, {rows, cols / 16}, component, sources[0]}
    );
    weights.insert(
        path + ".scales", {DType::f32, shape, component, sources[1]}
    );
    weights.insert(
        path + ".biases", {DType::f32, shape, component, sources[2]}
    );
    weights.erase(sidecar_name);
  }
  return static_cast<int64_t>(paths.size());
}

}  // namespace mlxcel
