#include "mlxcel/weights/vendor_format.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "mlxcel/core/error.h"
#include "mlxcel/core/json.h"
#include "mlxcel/core/text.h"

namespace mlxcel {

namespace {

// MLX's own declaration comes first, except that one of FP8 blocks counts
// beside it. Converted checkpoints often keep what the original said.
std::optional<Json> find_method(const Json& config) {
  auto own = config.find("quantization");
  if (own && own->find("quant_method")) {
    return own;
  }
  auto other = config.find("quantization_config");
  if (other && other->find("quant_method")) {
    return other;
  }
  auto text = config.find("text_config");
  return text && text->is_object() ? find_method(*text) : std::nullopt;
}

std::string text_of(const Json& object, const char* field) {
  auto found = object.find(field);
  return found && found->is_string() ? found->as_string() : "";
}

[[noreturn]] void refuse(const Json& object, const Json& field) {
  std::string what = field.preview();
  if (auto format = object.find("format")) {
    what += fmt::format(" with format {}", format->preview());
  }
  fail(
      ErrorCode::unsupported,
      fmt::format(
          "[quantization] {}: {} is not supported (in {}); convert the "
          "original model with an MLX exporter such as mlx_lm.convert",
          field.path(),
          what,
          object.document_name()
      )
  );
}

// The value as JSON, cut.
std::string text_of(const Json& value) {
  constexpr size_t kShown = 60;
  std::string text = value.raw().dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace
  );
  return text.size() > kShown ? text.substr(0, kShown) + "..." : text;
}

[[noreturn]] void refuse_field(
    const Json& object, const char* field, const std::string& why
) {
  auto found = object.find(field);
  fail(
      ErrorCode::unsupported,
      fmt::format(
          "[quantization] {}.{}: {} (in {})",
          object.path(),
          field,
          found ? fmt::format("{}, {}", text_of(*found), why) : why,
          object.document_name()
      )
  );
}

void check_fp8(const Json& object) {
  auto format = object.find("fmt");
  if (format && !(format->is_string() && format->as_string() == "e4m3")) {
    refuse_field(object, "fmt", "but only e4m3 can be read");
  }
  auto block = object.find("weight_block_size");
  if (!block || block->is_null()) {
    refuse_field(
        object,
        "weight_block_size",
        "missing: FP8 with a scale per tensor or per channel is not supported"
    );
  }
  bool right = block->is_array() && block->elements().size() == 2;
  for (size_t i = 0; right && i < 2; ++i) {
    Json size = block->elements()[i];
    right = size.is_integer() && size.as_int() == 128;
  }
  if (!right) {
    refuse_field(
        object, "weight_block_size", "but only [128, 128] can be read"
    );
  }
}

VendorFormat check_method(const Json& object, const Json& method) {
  std::string name =
      method.is_string() ? ascii_lower(method.as_string()) : std::string();
  if (name == "fp8") {
    check_fp8(object);
    return VendorFormat::fp8_blocks;
  }
  if (name == "modelopt") {
    if (ascii_lower(text_of(object, "quant_algo")) != "nvfp4") {
      refuse_field(
          object, "quant_algo", "but of ModelOpt's only NVFP4 can be read"
      );
    }
    return VendorFormat::modelopt_nvfp4;
  }
  if (name == "bitnet") {
    if (ascii_lower(text_of(object, "quantization_mode")) == "online") {
      refuse_field(
          object,
          "quantization_mode",
          "but weights that are made ternary at each use can't be read"
      );
    }
    return VendorFormat::bitnet;
  }
  if (name == "compressed-tensors" &&
      text_of(object, "format") == "mxfp4-pack-quantized") {
    return VendorFormat::packed_mxfp4;
  }
  refuse(object, method);
}

}  // namespace

VendorFormat vendor_format(const Json& config) {
  auto object = find_method(config);
  if (!object) {
    return VendorFormat::none;
  }
  Json method = *object->find("quant_method");
  // An MLX checkpoint that has kept the original's declaration is what its
  // own says, unless there are blocks left to requantise.
  if (config.find("quantization") && object->path() != "quantization" &&
      ascii_lower(method.is_string() ? method.as_string() : "") != "fp8") {
    return VendorFormat::none;
  }
  return check_method(*object, method);
}

bool vendor_field_is(const Json& config, const char* field, const char* value) {
  auto object = find_method(config);
  return object && text_of(*object, field) == value;
}

}  // namespace mlxcel
