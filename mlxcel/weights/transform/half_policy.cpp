#include "mlxcel/weights/transform/half_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "mlxcel/core/log.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/text.h"
#include "mlxcel/core/thread_pool.h"
#include "mlxcel/weights/transform/lazy_planes.h"

namespace mlxcel {

namespace {

// MLX's kernels for bfloat16 begin here.
constexpr int kNativeBf16 = 80;

bool is_one_of(
    const char* value, std::initializer_list<std::string_view> words
) {
  std::string text = ascii_lower(value == nullptr ? "" : value);
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool is_truthy(const char* value) {
  return is_one_of(value, {"1", "true", "on", "yes"});
}

bool is_falsy(const char* value) {
  return is_one_of(value, {"0", "false", "off", "no"});
}

std::optional<Json> text_part(const Json& config) {
  auto text = config.find("text_config");
  return text && text->is_object() ? text : std::nullopt;
}

// At the top level or in text_config.
bool has_key(const Json& config, const char* key) {
  auto text = text_part(config);
  return config.find(key) || (text && text->find(key));
}

bool is_quantized(const Json& config) {
  return has_key(config, "quantization") ||
         has_key(config, "quantization_config");
}

bool type_contains(const Json& config, std::string_view part) {
  auto text = text_part(config);
  for (const auto& place : {std::optional(config), text}) {
    auto type = place ? place->find("model_type") : std::nullopt;
    if (type && type->is_string() &&
        type->as_string().find(part) != std::string::npos) {
      return true;
    }
  }
  return false;
}

// A multiplier of the logits that is not 1: their range is another.
bool scales_logits(const Json& config) {
  auto text = text_part(config);
  for (const auto& place : {std::optional(config), text}) {
    auto scale = place ? place->find("logit_scale") : std::nullopt;
    if (scale && scale->is_number() && scale->as_double() != 0 &&
        scale->as_double() != 1) {
      return true;
    }
  }
  return false;
}

bool is_fragile(const Json& config) {
  for (const char* key :
       {"attn_logit_softcapping",
        "final_logit_softcapping",
        "logit_softcapping",
        "logits_soft_cap"}) {
    if (has_key(config, key)) {
      return true;
    }
  }
  for (const char* part :
       {"gemma", "cohere", "command", "apertus", "gpt_oss", "gpt-oss"}) {
    if (type_contains(config, part)) {
      return true;
    }
  }
  return scales_logits(config);
}

HalfPolicy cuda_policy(
    const DeviceFacts& device,
    const Json& config,
    const Environment& environment
) {
  const char* normalize = environment("MLXCEL_CUDA_F16_NORMALIZE");
  bool forced = is_truthy(environment("MLXCEL_CUDA_F16_FRAGILE"));
  if (device.compute_capability < kNativeBf16) {
    bool kept =
        is_falsy(normalize) || (type_contains(config, "apertus") && !forced);
    return kept ? HalfPolicy::keep : HalfPolicy::to_f16;
  }
  bool wanted = is_truthy(normalize) && !is_quantized(config) &&
                (!is_fragile(config) || forced);
  return wanted ? HalfPolicy::to_f16 : HalfPolicy::keep;
}

void convert(
    const std::vector<Weight>& inputs, const std::vector<std::byte*>& planes
) {
  const std::byte* from = inputs[0].bytes().data();
  constexpr int64_t kPiece = 1 << 16;
  ThreadPool::instance().parallel_for(
      inputs[0].elements(),
      kPiece,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          uint16_t half =
              float_to_f16(bf16_to_float(load_le<uint16_t>(from + 2 * i)));
          std::memcpy(planes[0] + 2 * i, &half, 2);
        }
      }
  );
}

std::vector<std::string> bf16_tensors(const WeightMap& weights) {
  std::vector<std::string> names;
  for (const auto& [name, weight] : weights) {
    if (weight.dtype == DType::bf16) {
      names.push_back(name);
    }
  }
  return names;
}

void tell(const Environment& environment, const std::string& message) {
  if (environment("MLXCEL_NO_PRECISION_WARNING") == nullptr) {
    log_info(message);
  }
}

}  // namespace

HalfPolicy half_policy(
    const DeviceFacts& device,
    const Json& config,
    bool family_keeps,
    const Environment& environment
) {
  if (environment("MLXCEL_KEEP_BF16") != nullptr) {
    return HalfPolicy::keep;
  }
  if (family_keeps) {
    return HalfPolicy::keep_for_family;
  }
  switch (device.kind) {
    case DeviceKind::cuda:
      return cuda_policy(device, config, environment);
    case DeviceKind::metal:
      return is_quantized(config) ? HalfPolicy::keep : HalfPolicy::to_f16;
    case DeviceKind::rocm:
    case DeviceKind::cpu:
      break;
  }
  return HalfPolicy::keep;
}

int64_t apply_half_policy(
    HalfPolicy policy, WeightMap& weights, const Environment& environment
) {
  if (policy == HalfPolicy::keep) {
    return 0;
  }
  std::vector<std::string> names = bf16_tensors(weights);
  if (policy == HalfPolicy::keep_for_family) {
    if (!names.empty()) {
      tell(
          environment,
          fmt::format(
              "[weights] {}: {} tensors stay bfloat16, the family needs its "
              "range",
              weights.origin,
              names.size()
          )
      );
    }
    return 0;
  }
  for (const std::string& name : names) {
    Weight weight = weights.at(name);
    auto sources = lazy_planes({weight}, {2 * weight.elements()}, convert);
    weights.insert(
        name, {DType::f16, weight.shape, weight.component, sources[0]}
    );
  }
  if (!names.empty()) {
    tell(
        environment,
        fmt::format(
            "[weights] {}: {} bfloat16 tensors are read as float16, which is "
            "faster on this device (MLXCEL_KEEP_BF16 keeps them)",
            weights.origin,
            names.size()
        )
    );
  }
  return static_cast<int64_t>(names.size());
}

}  // namespace mlxcel
