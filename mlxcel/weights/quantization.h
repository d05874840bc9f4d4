#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

class Json;
class QuantMismatches;

enum class QuantMode : uint8_t { dense, affine, mxfp4, mxfp8, nvfp4 };

std::string_view quant_mode_name(QuantMode mode);

/// How the rows of a matrix are stored. Dense: `dtype` is that of the values.
/// Quantised: `dtype` is that of scales (and biases), `bits` per code, `group`
/// codes per scale. Packing: weights-and-quantization.md 11.
struct WeightFormat {
  QuantMode mode = QuantMode::dense;
  DType dtype = DType::f32;
  int bits = 0;
  int group = 0;

  bool operator==(const WeightFormat&) const = default;
  /// "affine 4-bit group 64", "bf16".
  std::string describe() const;
  /// Bytes that one row of `cols` values takes, all planes together.
  int64_t row_bytes(int64_t cols) const;
};

/// Whether it is one of those that MLX has and 1-bit affine: f32, f16, bf16;
/// affine 1, 2, 3, 4, 5, 6, 8 bit with groups of 32, 64, 128 and such scales;
/// mxfp4, mxfp8 and nvfp4 with their own bits and groups.
bool is_mlx_format(const WeightFormat& format);

/// The declared quantisation of a checkpoint: `quantization` or
/// `quantization_config`, at the top level or in `text_config`. Only a hint:
/// shapes win (12.3).
struct QuantConfig {
  bool declared = false;
  QuantMode mode = QuantMode::affine;
  int bits = 4;
  int group = 64;

  struct Override {
    std::string path;  // module path, as written in the config
    bool dense = false;
    QuantMode mode = QuantMode::affine;
    int bits = 4;
    int group = 64;
  };
  std::vector<Override> overrides;  // sorted by path without wrapper prefix
  /// Counts the tensors of one load whose shapes contradict the declaration
  /// (12.4); may be null.
  std::shared_ptr<QuantMismatches> mismatches;

  /// Throws Error naming `quantization.<field>` and the value: bits outside
  /// 1..32, group outside 1..2^20, an unknown mode, GPTQ, AWQ and other
  /// `quant_method`s that are not read (vendor_format.h). What is absent gets
  /// the default of its mode (affine 4/64, mxfp4 4/32, mxfp8 8/32, nvfp4 4/16).
  static QuantConfig from_config(const Json& config);
  /// One mode for all, with its default widths.
  void declare(QuantMode of);
  /// What is declared for the module, matching an override with and without
  /// the wrapper prefixes `language_model.` and `model.`.
  Override for_module(const std::string& path) const;
};

/// A matrix [rows, cols] of a linear layer or an embedding, as its planes.
struct LinearWeight {
  std::string path;  // "model.layers.0.mlp.up_proj"
  int64_t rows = 0;
  int64_t cols = 0;
  WeightFormat format;
  Weight codes;  // dense values or packed words
  std::optional<Weight> scales;
  std::optional<Weight> biases;  // affine zero offsets, same shape as scales
  std::optional<Weight> bias;    // layer bias [rows]
  float global_scale = 1.0f;     // nvfp4: of all scales (ModelOpt)
};

/// Collects `<path>.weight|.scales|.biases|.bias|.global_scale` and checks them
/// against [rows, cols] (12.3, 12.5): `path.scales` present means quantised,
/// absent means dense. Bits and group follow from the shapes and `cols`; where
/// the declaration differs, a warning is logged. Affine: 1, 2, 3, 4, 5, 6 or 8
/// bits, groups of 32, 64 or 128.
/// Throws Error naming the tensor, both shapes and the origin.
LinearWeight bind_linear(
    const WeightMap& weights,
    const std::string& path,
    int64_t rows,
    int64_t cols,
    const QuantConfig& quantization
);

/// Row-major float32 [rows, cols] of any format: the definition that kernels
/// are tested against.
std::vector<float> dequantize(const LinearWeight& weight);

/// Affine quantisation of float32 [rows, cols] to 2, 3, 4, 5, 6 or 8 bits,
/// bit by bit what MLX's CPU backend makes (mlx/backend/cpu/quantized.cpp,
/// quantize): scales and biases unrounded, codes computed with them. cols must
/// be a multiple of group, group a multiple of 32. A NaN becomes code 0.
struct AffinePlanes {
  std::vector<uint32_t> codes;  // [rows, cols * bits / 32]
  std::vector<float> scales;    // [rows, cols / group]
  std::vector<float> biases;    // [rows, cols / group]
};
AffinePlanes quantize_affine(
    std::span<const float> values,
    int64_t rows,
    int64_t cols,
    int bits,
    int group
);
/// The same into memory of the caller: codes [values * bits / 32], scales and
/// biases [values / group].
void quantize_affine_into(
    std::span<const float> values,
    int bits,
    int group,
    uint32_t* codes,
    float* scales,
    float* biases
);

}  // namespace mlxcel
