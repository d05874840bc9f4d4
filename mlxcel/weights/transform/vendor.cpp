#include "mlxcel/weights/transform/vendor.h"

#include <fmt/format.h>

#include "mlxcel/core/json.h"
#include "mlxcel/core/log.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/text.h"
#include "mlxcel/weights/transform/bitnet.h"
#include "mlxcel/weights/transform/fp8_blocks.h"
#include "mlxcel/weights/transform/modelopt.h"
#include "mlxcel/weights/transform/packed_mxfp4.h"
#include "mlxcel/weights/transform/plain_types.h"
#include "mlxcel/weights/vendor_format.h"

namespace mlxcel {

namespace {

bool is_truthy(const char* variable) {
  const char* value = os::environment(variable);
  std::string text = ascii_lower(value == nullptr ? "" : value);
  return text == "1" || text == "true" || text == "on" || text == "yes";
}

void convert_modelopt(WeightMap& weights, const DeviceFacts& device) {
  bool native = is_truthy("MLXCEL_NVFP4_NATIVE_REPACK");
  if (native && device.kind == DeviceKind::rocm) {
    log_info("[modelopt] MLXCEL_NVFP4_NATIVE_REPACK is ignored on ROCm");
  }
  constexpr int kGroup = 64;
  convert_modelopt_nvfp4(
      weights,
      device,
      nvfp4_route(device, is_truthy("MLXCEL_NVFP4_DENSE_REPACK"), native),
      kGroup
  );
}

}  // namespace

void convert_vendor_formats(
    const Json& config, WeightMap& weights, const DeviceFacts& device
) {
  switch (vendor_format(config)) {
    case VendorFormat::none:
      break;
    case VendorFormat::fp8_blocks: {
      double start = os::now();
      int64_t count = convert_fp8_blocks(weights);
      log_info(fmt::format(
          "[fp8] {} matrices with blocks of 128 x 128 become mxfp8 as they are "
          "read",
          count
      ));
      log_debug(fmt::format("[fp8] {:.1f} ms", 1e3 * (os::now() - start)));
      break;
    }
    case VendorFormat::modelopt_nvfp4:
      convert_modelopt(weights, device);
      break;
    case VendorFormat::bitnet: {
      bool multiply = vendor_field_is(config, "linear_class", "autobitlinear");
      int64_t count = convert_bitnet(weights, multiply);
      log_info(
          fmt::format("[bitnet] {} ternary matrices become affine 2-bit", count)
      );
      break;
    }
    case VendorFormat::packed_mxfp4: {
      int64_t count = rename_packed_mxfp4(weights);
      log_info(fmt::format("[mxfp4] {} packed matrices renamed", count));
      break;
    }
  }
  convert_plain_types(weights);
}

}  // namespace mlxcel
