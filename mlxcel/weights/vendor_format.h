#pragma once

#include <cstdint>

namespace mlxcel {

class Json;

/// Formats of other exporters that weights/transform turns into MLX's.
enum class VendorFormat : uint8_t {
  none,
  fp8_blocks,      // quant_method fp8: E4M3 with a scale per 128 x 128
  modelopt_nvfp4,  // quant_method modelopt, quant_algo NVFP4
  bitnet,          // quant_method bitnet: ternary, four rows in a byte
  packed_mxfp4,    // compressed-tensors, format mxfp4-pack-quantized
};

/// What `quantization_config.quant_method` (at the top level or in
/// `text_config`) says. Its fields are checked. Throws Error(unsupported)
/// naming field and value for GPTQ, AWQ and every other method or variant,
/// whose tensors would give wrong numbers if they were taken for MLX's.
VendorFormat vendor_format(const Json& config);

/// The declaration that vendor_format() goes by has this text field with this
/// value.
bool vendor_field_is(const Json& config, const char* field, const char* value);

}  // namespace mlxcel
