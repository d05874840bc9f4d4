#include "mlxcel/weights/convert/checkpoint/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "mlxcel/core/error.h"
#include "mlxcel/core/json.h"
#include "mlxcel/core/numbers.h"

namespace mlxcel::convert {

namespace {

constexpr uint64_t kFileLimit = 16 << 20;
constexpr std::array kModes = {
    QuantMode::affine, QuantMode::mxfp4, QuantMode::mxfp8, QuantMode::nvfp4};

std::optional<QuantMode> parse_mode(std::string_view name) {
  for (QuantMode mode : kModes) {
    if (quant_mode_name(mode) == name) {
      return mode;
    }
  }
  return std::nullopt;
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::optional<int> small_number(const std::string& text) {
  auto number = parse_int(text);
  return number && *number >= 1 && *number <= (1 << 20)
             ? std::optional(static_cast<int>(*number))
             : std::nullopt;
}

std::optional<LayerFormat> parse_format(
    const std::string& text, const std::string& what
) {
  if (text == "dense") {
    return LayerFormat{QuantMode::dense, 0, 0};
  }
  std::vector<std::string> parts = split(text, '/');
  QuantMode mode = QuantMode::affine;
  if (auto named = parse_mode(parts[0])) {
    mode = *named;
    parts.erase(parts.begin());
  }
  std::vector<std::optional<int>> numbers(2);
  if (parts.size() > numbers.size()) {
    return std::nullopt;
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    numbers[i] = small_number(parts[i]);
    if (!numbers[i]) {
      return std::nullopt;
    }
  }
  return complete_format(mode, numbers[0], numbers[1], what);
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

LayerFormat complete_format(
    QuantMode mode,
    std::optional<int> bits,
    std::optional<int> group,
    const std::string& what
) {
  QuantConfig defaults;
  defaults.declare(mode);
  LayerFormat format{
      mode, bits.value_or(defaults.bits), group.value_or(defaults.group)};
  WeightFormat full{mode, DType::f32, format.bits, format.group};
  // MLX has no 1-bit quantiser.
  if (!is_mlx_format(full) || format.bits == 1) {
    fail(
        ErrorCode::usage,
        fmt::format(
            "[convert] {}: {} can't be made; {}",
            what,
            full.describe(),
            mode == QuantMode::affine
                ? std::string("affine has 2, 3, 4, 5, 6 or 8 bits in groups of "
                              "32, 64 or 128")
                : fmt::format(
                      "{} has {} bits in groups of {}",
                      quant_mode_name(mode),
                      defaults.bits,
                      defaults.group
                  )
        )
    );
  }
  return format;
}

LayerRule parse_rule(const std::string& text) {
  size_t at = text.rfind('=');
  std::string what = "rule " + quote(text);
  if (at != std::string::npos && at > 0) {
    if (auto format = parse_format(text.substr(at + 1), what)) {
      return {text.substr(0, at), *format};
    }
  }
  fail(
      ErrorCode::usage,
      fmt::format(
          "[convert] {}: expected PATTERN=FORMAT, where FORMAT is dense, BITS, "
          "BITS/GROUP, MODE or MODE/BITS/GROUP",
          what
      )
  );
}

std::vector<LayerRule> read_rules(const std::string& path) {
  Json file = Json::parse_file(path, kFileLimit);
  std::vector<LayerRule> rules;
  for (const auto& [pattern, value] : file.items()) {
    if (value.is_bool() && !value.as_bool()) {
      rules.push_back({pattern, {QuantMode::dense, 0, 0}});
      continue;
    }
    if (!value.is_object()) {
      value.reject("expected false or an object of bits, group_size and mode");
    }
    QuantMode mode = QuantMode::affine;
    std::optional<int> bits;
    std::optional<int> group;
    for (const auto& [key, field] : value.items()) {
      if (key == "bits") {
        bits = static_cast<int>(field.as_int(1, 32));
      } else if (key == "group_size") {
        group = static_cast<int>(field.as_int(1, 1 << 20));
      } else if (key == "mode" && parse_mode(field.as_string())) {
        mode = *parse_mode(field.as_string());
      } else {
        field.reject(
            "expected bits, group_size, or mode: affine, mxfp4, mxfp8, nvfp4"
        );
      }
    }
    rules.push_back(
        {pattern,
         complete_format(
             mode, bits, group, fmt::format("{} in {}", quote(pattern), path)
         )}
    );
  }
  return rules;
}

// Greedy with one way back, hence linear in practice: the last star takes one
// character more.
bool matches(const std::string& pattern, const std::string& path) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string::npos;
  size_t from = 0;
  while (t < path.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == path[t])) {
      ++p;
      ++t;
    } else if (star != std::string::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string::npos;
}

std::optional<MixedPreset> find_preset(const std::string& name) {
  if (name == "mixed_2_6") {
    return MixedPreset{2, 6};
  }
  if (name == "mixed_3_4") {
    return MixedPreset{3, 4};
  }
  if (name == "mixed_3_6") {
    return MixedPreset{3, 6};
  }
  if (name == "mixed_4_6") {
    return MixedPreset{4, 6};
  }
  return std::nullopt;
}

// mlx_lm/convert.py, mixed_quant_predicate_builder.
LayerFormat preset_format(
    const MixedPreset& preset,
    int group,
    const std::string& path,
    size_t layer_at,
    int64_t layers
) {
  std::vector<std::string> parts = split(path, '.');
  int64_t index =
      layer_at < parts.size() ? parse_int(parts[layer_at]).value_or(0) : 0;
  int64_t eighth = layers / 8;
  bool more =
      index < eighth || index >= 7 * layers / 8 || (index - eighth) % 3 == 2;
  bool named = contains(path, "v_proj") || contains(path, "v_a_proj") ||
               contains(path, "v_b_proj") || contains(path, "down_proj");
  bool high = (named && more) || contains(path, "lm_head");
  return {QuantMode::affine, high ? preset.high_bits : preset.low_bits, group};
}

}  // namespace mlxcel::convert
