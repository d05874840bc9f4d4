#include "mlxcel/weights/convert/checkpoint/output_config.h"

#include <nlohmann/json.hpp>

#include "mlxcel/core/json.h"

namespace mlxcel::convert {

namespace {

using Object = nlohmann::ordered_json;

Object entry(QuantMode mode, int bits, int group) {
  return {
      {"group_size", group},
      {"bits", bits},
      {"mode", std::string(quant_mode_name(mode))}};
}

const char* spelled(DType type) {
  return type == DType::f32   ? "float32"
         : type == DType::f16 ? "float16"
                              : "bfloat16";
}

void edit_section(Object& section, const std::optional<DType>& dtype) {
  section.erase("quantization");
  section.erase("quantization_config");
  if (!dtype) {
    return;
  }
  for (const char* key : {"torch_dtype", "dtype"}) {
    if (section.contains(key)) {
      section[key] = spelled(*dtype);
    }
  }
}

Object quantization(const Plan& plan) {
  const LayerFormat& usual = plan.declared;
  Object json = entry(usual.mode, usual.bits, usual.group);
  for (const PlannedTensor& tensor : plan.tensors) {
    const WeightFormat& f = tensor.target;
    bool quantized = !tensor.parts.empty() && f.mode != QuantMode::dense;
    if (quantized && LayerFormat{f.mode, f.bits, f.group} != usual) {
      json[tensor.path()] = entry(f.mode, f.bits, f.group);
    }
  }
  return json;
}

}  // namespace

std::string output_config(
    const Json& config, const Plan& plan, const std::optional<DType>& dtype
) {
  Object json = config.raw();
  edit_section(json, dtype);
  auto text = json.find("text_config");
  if (text != json.end() && text->is_object()) {
    edit_section(*text, dtype);
  }
  if (dtype) {
    json["torch_dtype"] = spelled(*dtype);
  }
  if (plan.declared.mode != QuantMode::dense) {
    json["quantization"] = quantization(plan);
    json["quantization_config"] = json["quantization"];
  }
  return json.dump(2) + "\n";
}

}  // namespace mlxcel::convert
