#include "mlxcel/weights/transform/modelopt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "mlxcel/core/error.h"
#include "mlxcel/core/log.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/thread_pool.h"
#include "mlxcel/weights/quantization.h"
#include "mlxcel/weights/small_floats.h"
#include "mlxcel/weights/transform/lazy_planes.h"
#include "mlxcel/weights/transform/planes_beside.h"

namespace mlxcel {

namespace {

constexpr std::string_view kGlobal = ".weight_scale_2";
constexpr std::string_view kUnused = ".input_scale";

constexpr std::array kRenames = {
    PrefixRename{"model.language_model.", "language_model.model."},
    PrefixRename{"model.vision_tower.", "vision_tower."},
    PrefixRename{"model.embed_vision.", "embed_vision."},
    PrefixRename{"model.lm_head.", "lm_head."},
};

int64_t rename_keys(WeightMap& weights) {
  bool wrapped = std::any_of(weights.begin(), weights.end(), [](auto& tensor) {
    return tensor.first.starts_with(kRenames[0].from);
  });
  return wrapped ? rename_prefixes(weights, kRenames) : 0;
}

struct Layer {
  Weight weight;
  Weight scale;
  Weight global;
  int64_t rows = 0;
  int64_t cols = 0;
};

// Why the planes can't be read; empty if they can.
std::string find_fault(const WeightMap& weights, const std::string& path) {
  const Weight* weight = weights.find(path + ".weight");
  const Weight* scale = weights.find(path + ".weight_scale");
  const Weight& global = weights.at(path + std::string(kGlobal));
  if (weight == nullptr || scale == nullptr) {
    return weight == nullptr ? "there is no .weight"
                             : "there is no .weight_scale";
  }
  if (global.dtype != DType::f32 || global.elements() != 1) {
    return ".weight_scale_2 is " + global.describe() + ", not one F32";
  }
  if (weight->dtype != DType::u8 || weight->shape.size() != 2) {
    return ".weight is " + weight->describe() + ", not U8 of two dimensions";
  }
  int64_t cols = 2 * weight->shape[1];
  if (cols == 0 || cols % 16 != 0) {
    return fmt::format("{} columns are no multiple of 16", cols);
  }
  bool bytes = scale->dtype == DType::f8_e4m3 || scale->dtype == DType::u8;
  if (!bytes ||
      scale->shape != std::vector<int64_t>{weight->shape[0], cols / 16}) {
    return fmt::format(
        ".weight_scale is {}, not [{}, {}] F8_E4M3",
        scale->describe(),
        weight->shape[0],
        cols / 16
    );
  }
  return "";
}

// A row as float32, rounded to f16 as the official route has it.
void dense_row(
    const std::vector<Weight>& inputs, int64_t row, float global, float* out
) {
  int64_t half = inputs[0].shape[1];
  const std::byte* codes = inputs[0].bytes().data() + row * half;
  const std::byte* scales = inputs[1].bytes().data() + row * (half / 8);
  for (int64_t c = 0; c < 2 * half; ++c) {
    auto byte = static_cast<uint8_t>(codes[c / 2]);
    int code = c % 2 == 0 ? byte & 15 : byte >> 4;
    float scale = e4m3_values()[static_cast<uint8_t>(scales[c / 16])];
    float value = e2m1_values()[static_cast<size_t>(code)] * scale * global;
    out[c] = f16_to_float(float_to_f16(value));
  }
}

template <typename F>
void for_dense_rows(const std::vector<Weight>& inputs, F f) {
  int64_t rows = inputs[0].shape[0];
  auto cols = static_cast<size_t>(2 * inputs[0].shape[1]);
  float global = to_float(inputs[2])[0];
  ThreadPool::instance()
      .parallel_for(rows, 16, [&](int64_t begin, int64_t end) {
        std::vector<float> row(cols);
        for (int64_t r = begin; r < end; ++r) {
          dense_row(inputs, r, global, row.data());
          f(r, row);
        }
      });
}

void make_direct(WeightMap& weights, const std::string& path, Layer layer) {
  layer.weight.dtype = DType::u32;
  layer.weight.shape[1] = layer.cols / 8;
  layer.scale.dtype = DType::u8;
  layer.global.shape = {1};
  weights.insert(path + ".weight", layer.weight);
  weights.insert(path + ".scales", layer.scale);
  weights.insert(path + ".global_scale", layer.global);
}

void make_native(
    WeightMap& weights, const std::string& path, const Layer& layer
) {
  int64_t rows = layer.rows;
  int64_t cols = layer.cols;
  auto sources = lazy_planes(
      {layer.weight, layer.scale, layer.global},
      {rows * cols / 2, rows * cols / 16},
      [cols](
          const std::vector<Weight>& inputs,
          const std::vector<std::byte*>& planes
      ) {
        for_dense_rows(inputs, [&](int64_t r, std::span<const float> row) {
          quantize_nvfp4(
              row, planes[0] + r * (cols / 2), planes[1] + r * (cols / 16)
          );
        });
      }
  );
  Component component = layer.weight.component;
  weights.insert(
      path + ".weight", {DType::u32, {rows, cols / 8}, component, sources[0]}
  );
  weights.insert(
      path + ".scales", {DType::u8, {rows, cols / 16}, component, sources[1]}
  );
}

// Scales and biases in f16, the type of the values they are made of.
void make_affine(
    WeightMap& weights,
    const std::string& path,
    const Layer& layer,
    int64_t group
) {
  int64_t rows = layer.rows;
  int64_t cols = layer.cols;
  int64_t groups = cols / group;
  auto sources = lazy_planes(
      {layer.weight, layer.scale, layer.global},
      {rows * cols / 2, 2 * rows * groups, 2 * rows * groups},
      [=](const std::vector<Weight>& inputs,
          const std::vector<std::byte*>& planes) {
        for_dense_rows(inputs, [&](int64_t r, std::span<const float> row) {
          std::vector<uint32_t> codes(static_cast<size_t>(cols / 8));
          std::vector<float> scales(static_cast<size_t>(groups));
          std::vector<float> biases(scales.size());
          quantize_affine_into(
              row,
              4,
              static_cast<int>(group),
              codes.data(),
              scales.data(),
              biases.data()
          );
          std::memcpy(
              planes[0] + r * (cols / 2), codes.data(), 4 * codes.size()
          );
          for (size_t g = 0; g < scales.size(); ++g) {
            int64_t at = 2 * (r * groups + static_cast<int64_t>(g));
            uint16_t scale = float_to_f16(scales[g]);
            uint16_t bias = float_to_f16(biases[g]);
            std::memcpy(planes[1] + at, &scale, 2);
            std::memcpy(planes[2] + at, &bias, 2);
          }
        });
      }
  );
  Component component = layer.weight.component;
  std::vector<int64_t> shape = {rows, groups};
  weights.insert(
      path + ".weight", {DType::u32, {rows, cols / 8}, component, sources[0]}
  );
  weights.insert(path + ".scales", {DType::f16, shape, component, sources[1]});
  weights.insert(path + ".biases", {DType::f16, shape, component, sources[2]});
}

// The wanted group, else the first that divides the columns; 0 if none does.
int64_t affine_group(int64_t cols, int64_t wanted) {
  if (wanted != 32 && wanted != 64 && wanted != 128) {
    wanted = 64;
  }
  for (int64_t group : {wanted, int64_t{32}, int64_t{64}, int64_t{128}}) {
    if (cols % group == 0) {
      return group;
    }
  }
  return 0;
}

void tell(const Nvfp4Result& result, Nvfp4Route route, DeviceKind device) {
  if (result.renamed > 0) {
    log_info(fmt::format("[modelopt] renamed {} tensors", result.renamed));
  }
  const char* path = route == Nvfp4Route::direct ? "nvfp4 as it is"
                     : route == Nvfp4Route::dense_native
                         ? "nvfp4 through f16"
                         : "affine 4-bit through f16";
  log_info(fmt::format(
      "[modelopt] NVFP4: {} matrices become {}{}",
      result.repacked,
      path,
      device == DeviceKind::rocm ? " (ROCm has no nvfp4)" : ""
  ));
}

}  // namespace

Nvfp4Route nvfp4_route(
    const DeviceFacts& device, bool dense_repack, bool native_repack
) {
  if (device.kind == DeviceKind::rocm) {
    return Nvfp4Route::dense_affine;
  }
  if (!dense_repack) {
    return Nvfp4Route::direct;
  }
  bool native = device.kind == DeviceKind::cuda || native_repack;
  return native ? Nvfp4Route::dense_native : Nvfp4Route::dense_affine;
}

Nvfp4Result convert_modelopt_nvfp4(
    WeightMap& weights, const DeviceFacts& device, Nvfp4Route route, int group
) {
  Nvfp4Result result;
  result.renamed = rename_keys(weights);
  for (const std::string& path : modules_with(weights, kGlobal)) {
    std::string fault = find_fault(weights, path);
    int64_t wanted = 0;
    if (fault.empty() && route == Nvfp4Route::dense_affine) {
      wanted = affine_group(2 * weights.at(path + ".weight").shape[1], group);
      fault =
          wanted == 0 ? "no group of 32, 64 or 128 divides its columns" : "";
    }
    if (!fault.empty() && device.kind == DeviceKind::rocm) {
      fail(
          ErrorCode::invalid_input,
          fmt::format("[modelopt] {}: {} (in {})", path, fault, weights.origin)
      );
    }
    if (!fault.empty()) {
      log_warning(fmt::format("[modelopt] {}: left alone, {}", path, fault));
      ++result.unusable;
      continue;
    }
    Layer layer;
    layer.weight = weights.at(path + ".weight");
    layer.scale = weights.at(path + ".weight_scale");
    layer.global = weights.at(path + std::string(kGlobal));
    layer.rows = layer.weight.shape[0];
    layer.cols = 2 * layer.weight.shape[1];
    weights.erase(path + ".weight_scale");
    weights.erase(path + std::string(kGlobal));
    switch (route) {
      case Nvfp4Route::direct:
        make_direct(weights, path, std::move(layer));
        break;
      case Nvfp4Route::dense_native:
        make_native(weights, path, layer);
        break;
      case Nvfp4Route::dense_affine:
        make_affine(weights, path, layer, wanted);
        break;
    }
    ++result.repacked;
  }
  for (const std::string& path : modules_with(weights, kUnused)) {
    weights.erase(path + std::string(kUnused));
  }
  tell(result, route, device.kind);
  return result;
}

}  // namespace mlxcel
