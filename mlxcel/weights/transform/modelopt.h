#pragma once

#include <cstdint>

#include "mlxcel/core/device_facts.h"
#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// What NVIDIA's NVFP4 planes become.
enum class Nvfp4Route : uint8_t {
  direct,        // the same bytes as MLX's nvfp4 with a global scale
  dense_native,  // through f16 values to MLX's nvfp4
  dense_affine,  // through f16 values to affine 4-bit
};

/// MLXCEL_NVFP4_DENSE_REPACK and MLXCEL_NVFP4_NATIVE_REPACK; ROCm has no
/// nvfp4 kernels.
Nvfp4Route nvfp4_route(
    const DeviceFacts& device, bool dense_repack, bool native_repack
);

struct Nvfp4Result {
  int64_t renamed = 0;   // keys that lost the wrapper `model.`
  int64_t repacked = 0;  // layers
  int64_t unusable = 0;  // left alone
};

/// ModelOpt's NVFP4: `p.weight` U8 [out, in / 2], two E2M1 codes a byte, low
/// nibble first; `p.weight_scale` E4M3 [out, in / 16]; `p.weight_scale_2` F32,
/// one number; `p.input_scale` is dropped. A value is code * scale * scale_2.
/// Keys that start with model.language_model., model.vision_tower.,
/// model.embed_vision. and model.lm_head. get the names of MLX's checkpoints
/// if there are any of the first. `group` is wanted of affine planes: 32, 64
/// or 128. A layer that can't be read so is left alone and told in the log; on
/// ROCm it is an Error(invalid_input) naming the layer and the reason.
Nvfp4Result convert_modelopt_nvfp4(
    WeightMap& weights, const DeviceFacts& device, Nvfp4Route route, int group
);

}  // namespace mlxcel
