#include "mlxcel/weights/transform/shared_kv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "mlxcel/core/json.h"

namespace mlxcel {

namespace {

constexpr std::array<std::string_view, 2> kLayers = {
    "model.layers.", "language_model.model.layers."};
constexpr std::array<std::string_view, 3> kModules = {
    ".self_attn.k_proj.", ".self_attn.v_proj.", ".self_attn.k_norm."};

// The layer whose keys or values the tensor makes; empty for another tensor.
std::optional<int64_t> key_value_layer(std::string_view name) {
  for (std::string_view prefix : kLayers) {
    if (!name.starts_with(prefix)) {
      continue;
    }
    std::string_view rest = name.substr(prefix.size());
    int64_t layer = 0;
    auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), layer);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    bool known = std::any_of(kModules.begin(), kModules.end(), [&](auto part) {
      return rest.starts_with(part);
    });
    if (error == std::errc() && known) {
      return layer;
    }
  }
  return std::nullopt;
}

}  // namespace

int64_t drop_shared_kv(const Json& config, WeightMap& weights) {
  auto text = config.find("text_config");
  const Json& place =
      text && text->is_object() && text->has("num_kv_shared_layers") ? *text
                                                                     : config;
  auto field = place.find("num_kv_shared_layers");
  if (!field) {
    return 0;
  }
  int64_t shared = field->as_int(0, INT32_MAX);
  if (shared == 0) {
    return 0;
  }
  int64_t layers = place.at("num_hidden_layers").as_int(1, INT32_MAX);
  if (shared > layers) {
    field->reject(fmt::format("{} of {} hidden layers", shared, layers));
  }
  auto dropped = weights.take_if([&](std::string_view name) {
    auto layer = key_value_layer(name);
    return layer && *layer >= layers - shared && *layer < layers;
  });
  return std::ssize(dropped);
}

}  // namespace mlxcel
