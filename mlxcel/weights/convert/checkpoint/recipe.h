#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mlxcel/weights/quantization.h"

namespace mlxcel::convert {

/// A format that MLX's `quantize` makes, without the type of its scales;
/// QuantMode::dense: not quantised.
struct LayerFormat {
  QuantMode mode = QuantMode::affine;
  int bits = 4;
  int group = 64;

  bool operator==(const LayerFormat&) const = default;
};

/// What is not given gets the default of the mode: affine 4/64, mxfp4 4/32,
/// mxfp8 8/32, nvfp4 4/16. Throws Error(usage) naming `what` for a width that
/// MLX can't make: affine has 2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or
/// 128, the others have their own alone.
LayerFormat complete_format(
    QuantMode mode,
    std::optional<int> bits,
    std::optional<int> group,
    const std::string& what
);

/// Modules whose path matches `pattern` (`*` is any text, `?` any character)
/// get this format.
struct LayerRule {
  std::string pattern;
  LayerFormat format;
};

/// "PATTERN=FORMAT". FORMAT: `dense`, or BITS, BITS/GROUP, MODE or
/// MODE/BITS/GROUP. Throws Error(usage) with the text.
LayerRule parse_rule(const std::string& text);

/// Rules of a JSON file in the form of config.json's `quantization`: an object
/// PATTERN -> {"bits", "group_size", "mode"} or false. Throws Error naming the
/// file and the field.
std::vector<LayerRule> read_rules(const std::string& path);

bool matches(const std::string& pattern, const std::string& path);

/// mlx-lm's mixed presets: more bits for v_proj and down_proj of the first and
/// last eighth of the layers and each third one between, and for lm_head.
struct MixedPreset {
  int low_bits;
  int high_bits;
};
/// mixed_2_6, mixed_3_4, mixed_3_6, mixed_4_6; empty for another name.
std::optional<MixedPreset> find_preset(const std::string& name);

/// Formats of all modules. The first rule that matches decides; then the
/// preset; then the first matching rule of the family; then the base.
struct QuantRecipe {
  LayerFormat base;
  std::optional<MixedPreset> preset;
  std::vector<LayerRule> rules;
  std::vector<LayerRule> family_rules;
};

/// What the preset gives a module. `layer_at`: which part of a path, cut at
/// its dots, is the number of the layer.
LayerFormat preset_format(
    const MixedPreset& preset,
    int group,
    const std::string& path,
    size_t layer_at,
    int64_t layers
);

}  // namespace mlxcel::convert
