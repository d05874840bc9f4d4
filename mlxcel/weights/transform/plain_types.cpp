#include "mlxcel/weights/transform/plain_types.h"

#include <fmt/format.h>

#include <cstring>

#include "mlxcel/core/error.h"
#include "mlxcel/core/log.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/thread_pool.h"
#include "mlxcel/weights/small_floats.h"
#include "mlxcel/weights/transform/lazy_planes.h"

namespace mlxcel {

namespace {

bool is_fp8(DType dtype) {
  return dtype == DType::f8_e4m3 || dtype == DType::f8_e5m2;
}

DType target_of(DType dtype) {
  return dtype == DType::f64 ? DType::f32 : DType::bf16;
}

void convert(
    const std::vector<Weight>& inputs, const std::vector<std::byte*>& planes
) {
  const Weight& from = inputs[0];
  const std::byte* bytes = from.bytes().data();
  std::byte* to = planes[0];
  bool wide = from.dtype == DType::f64;
  const auto& table =
      from.dtype == DType::f8_e5m2 ? e5m2_values() : e4m3_values();
  constexpr int64_t kPiece = 1 << 16;
  ThreadPool::instance()
      .parallel_for(from.elements(), kPiece, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          if (wide) {
            auto value = static_cast<float>(load_le<double>(bytes + 8 * i));
            std::memcpy(to + 4 * i, &value, 4);
          } else {
            uint16_t half =
                float_to_bf16(table[static_cast<uint8_t>(bytes[i])]);
            std::memcpy(to + 2 * i, &half, 2);
          }
        }
      });
}

void refuse_scaled(
    const WeightMap& weights, const std::string& name, const Weight& weight
) {
  std::string path = name.substr(0, name.rfind('.') + 1);
  for (const char* sidecar :
       {"weight_scale", "weight_scale_inv", "scale_weight"}) {
    if (weights.contains(path + sidecar)) {
      fail(
          ErrorCode::unsupported,
          fmt::format(
              "[weights] {} {}: FP8 with {}{} is not supported without a "
              "config that declares blocks of 128 x 128 (in {})",
              name,
              weight.describe(),
              path,
              sidecar,
              weight.source->origin()
          )
      );
    }
  }
}

// Scales of a quantised layer, which are no values of their own.
bool is_scale_plane(const WeightMap& weights, const std::string& name) {
  constexpr std::string_view kScales = ".scales";
  if (!name.ends_with(kScales)) {
    return false;
  }
  std::string path = name.substr(0, name.size() - kScales.size());
  const Weight* codes = weights.find(path + ".weight");
  return codes != nullptr && codes->dtype == DType::u32;
}

}  // namespace

void convert_plain_types(WeightMap& weights) {
  std::vector<std::string> names;
  for (const auto& [name, weight] : weights) {
    if ((weight.dtype == DType::f64 || is_fp8(weight.dtype)) &&
        !is_scale_plane(weights, name)) {
      names.push_back(name);
    }
  }
  std::map<DType, int> counts;
  for (const std::string& name : names) {
    Weight weight = weights.at(name);
    if (is_fp8(weight.dtype)) {
      refuse_scaled(weights, name, weight);
    }
    ++counts[weight.dtype];
    DType dtype = target_of(weight.dtype);
    auto sources =
        lazy_planes({weight}, {weight.elements() * dtype_size(dtype)}, convert);
    weights.insert(name, {dtype, weight.shape, weight.component, sources[0]});
  }
  for (const auto& [dtype, count] : counts) {
    log_info(fmt::format(
        "[weights] {}: {} tensors of {} are read as {}",
        weights.origin,
        count,
        dtype_name(dtype),
        dtype_name(target_of(dtype))
    ));
  }
}

}  // namespace mlxcel
