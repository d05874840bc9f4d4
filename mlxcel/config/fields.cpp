#include "mlxcel/config/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "mlxcel/config/config.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"

namespace mlxcel {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// What the sanitiser writes for Infinity.
constexpr double kInfinityLiteral = 1e38;
// Far above any rank and any picture; bounds what a size is made of.
constexpr int64_t kMaxRank = 1 << 24;
constexpr int64_t kMaxSide = 1 << 16;
constexpr size_t kMaxLayers = 1 << 16;

double or_infinity(const Json& item) {
  if (!item.is_number()) {
    return kInfinity;
  }
  double value = item.as_double();
  return value >= kInfinityLiteral ? kInfinity : value;
}

char layer_code(const Json& item) {
  const std::string& word = item.as_string();
  constexpr std::pair<std::string_view, char> kCodes[] = {
      {"mamba", 'M'},
      {"M", 'M'},
      {"attention", '*'},
      {"*", '*'},
      {"moe", 'E'},
      {"E", 'E'},
      {"mlp", '-'},
      {"-", '-'},
  };
  for (const auto& [name, code] : kCodes) {
    if (name == word) {
      return code;
    }
  }
  item.reject(fmt::format(
      "{} is no kind of layer (mamba, attention, moe, mlp)", quote(word)
  ));
}

std::vector<char> codes_of_text(const Json& field) {
  std::vector<char> codes;
  for (char c : field.as_string()) {
    if (c == ',' || c == ' ') {
      continue;
    }
    if (c != 'M' && c != '*' && c != 'E' && c != '-') {
      field.reject(fmt::format(
          "{} is no kind of layer (M, *, E, -)", quote(std::string_view(&c, 1))
      ));
    }
    codes.push_back(c);
  }
  return codes;
}

}  // namespace

int64_t rank_or_auto(const Json& config, std::string_view key) {
  auto field = config.find(key);
  if (!field || (field->is_string() && !parse_int(field->as_string()))) {
    return 0;
  }
  return field->as_int(1, kMaxRank);
}

std::pair<double, double> time_step_limit(const Json& config) {
  auto field = config.find("time_step_limit");
  if (!field) {
    return {0.0, kInfinity};
  }
  std::vector<Json> items = field->elements();
  if (items.size() < 2) {
    return {0.0, kInfinity};
  }
  return {items[0].as_double(), or_infinity(items[1])};
}

std::vector<char> layer_pattern(const Json& config) {
  std::vector<char> codes;
  for (const char* key :
       {"hybrid_override_pattern", "layers_block_type", "layer_types"}) {
    auto field = config.find(key);
    if (!field) {
      continue;
    }
    if (field->size() > kMaxLayers ||
        (field->is_string() && field->as_string().size() > 2 * kMaxLayers)) {
      field->reject("too many layers");
    }
    if (field->is_string()) {
      return codes_of_text(*field);
    }
    for (const Json& item : field->elements()) {
      codes.push_back(layer_code(item));
    }
    return codes;
  }
  return codes;
}

bool declares_quantization(const Json& config) {
  for (const Json& place : {config, text_config(config)}) {
    if (place.has("quantization") || place.has("quantization_config")) {
      return true;
    }
  }
  return false;
}

int64_t detector_image_size(const Json& config) {
  auto size = config.find("size");
  if (size && size->is_object()) {
    for (const char* key : {"height", "shortest_edge", "width"}) {
      if (auto side = size->find(key)) {
        return side->as_int(1, kMaxSide);
      }
    }
  } else if (size) {
    return size->as_int(1, kMaxSide);
  }
  return config.int_or("image_size", 0, 1, kMaxSide);
}

std::vector<std::pair<int64_t, std::string>> labels(const Json& config) {
  std::vector<std::pair<int64_t, std::string>> all;
  auto field = config.find("id2label");
  if (!field) {
    return all;
  }
  for (const auto& [key, label] : field->items()) {
    auto id = parse_int(key);
    if (!id || *id < 0) {
      label.reject(fmt::format("{} is no label id", quote(key)));
    }
    all.emplace_back(*id, label.as_string());
  }
  std::sort(all.begin(), all.end());
  return all;
}

Json lift_drafter_fields(const Json& config) {
  auto block = config.find("dflash_config");
  if (!block || !block->is_object()) {
    return config;
  }
  nlohmann::ordered_json lifted = config.raw();
  for (const char* key :
       {"mask_token_id", "target_layer_ids", "num_target_layers"}) {
    if (auto inner = block->find(key)) {
      lifted[key] = inner->raw();
    }
  }
  return Json::from(std::move(lifted), config.document_name());
}

}  // namespace mlxcel
