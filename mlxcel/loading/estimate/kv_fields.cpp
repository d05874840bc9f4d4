#include "mlxcel/loading/estimate/kv_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/core/error.h"
#include "mlxcel/loading/signals.h"

namespace mlxcel::kv {

namespace {

constexpr int64_t kMostLayers = 1 << 16;

}  // namespace

void unknown(std::string why) {
  throw Unknown{std::move(why)};
}

std::optional<int64_t> KvFields::optional_field(std::string_view names) const {
  while (!names.empty()) {
    size_t end = std::min(names.find(' '), names.size());
    std::string name(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
    if (!config_.has(name)) {
      continue;
    }
    auto value = count_of(config_, name);
    if (!value || *value < 0 || *value > kMostWidth) {
      unknown(fmt::format(
          "{}: expected a count, got {}",
          config_.at(name).path(),
          config_.at(name).preview()
      ));
    }
    return value;
  }
  return std::nullopt;
}

int64_t KvFields::field(std::string_view names) const {
  auto value = optional_field(names);
  std::string_view first = names.substr(0, names.find(' '));
  if (!value || *value == 0) {
    unknown(fmt::format("the config has no {}", first));
  }
  return *value;
}

void KvFields::read_layers() {
  layers_ = field(
      "num_hidden_layers n_layer n_layers num_layers num_transformer_layers"
  );
  if (layers_ > kMostLayers) {
    unknown(fmt::format("{} layers are no number of layers", layers_));
  }
}

int64_t KvFields::heads() const {
  return field("num_attention_heads n_head n_heads num_heads");
}

int64_t KvFields::kv_heads() const {
  if (rule_.multi_query) {
    auto multi = config_.find("multi_query");
    if (!multi || !multi->is_bool() || multi->as_bool()) {
      return 1;
    }
  }
  auto nested = config_.find("attn_config");
  if (nested && nested->is_object()) {
    if (auto own = count_of(*nested, "kv_n_heads"); own && *own > 0) {
      return *own;
    }
  }
  auto own = optional_field(
      "num_key_value_heads n_kv_heads n_kv_head num_kv_heads "
      "num_attention_groups"
  );
  return own && *own > 0 ? *own : heads();
}

int64_t KvFields::head_dim() const {
  if (auto own = optional_field(
          "head_dim kv_channels attention_head_dim hidden_size_per_head"
      );
      own && *own > 0) {
    return *own;
  }
  if (rule_.head_dim > 0) {
    return rule_.head_dim;
  }
  return field("hidden_size n_embd d_model dim hidden_dim") / heads();
}

int64_t KvFields::standard_values() const {
  int64_t value_dim = optional_field("v_head_dim").value_or(0);
  int64_t dim = head_dim();
  return kv_heads() * (dim + (value_dim > 0 ? value_dim : dim));
}

int64_t KvFields::latent_values() const {
  int64_t values = field("kv_lora_rank") + field("qk_rope_head_dim");
  // The key of the sparse indexer, per token.
  return values + optional_field("index_head_dim").value_or(0);
}

int64_t KvFields::window() const {
  return optional_field(
             "sliding_window sliding_window_size attention_window_size"
  )
      .value_or(0);
}

std::vector<std::string> KvFields::layer_types() const {
  std::vector<std::string> types;
  auto list = config_.find("layer_types");
  if (!list || !list->is_array()) {
    list = config_.find("layers_block_type");
  }
  if (!list || !list->is_array()) {
    return types;
  }
  for (const Json& type : list->elements()) {
    if (!type.is_string()) {
      unknown(fmt::format("{}: expected a word", type.path()));
    }
    types.push_back(type.as_string());
  }
  if (static_cast<int64_t>(types.size()) < layers_) {
    unknown(fmt::format(
        "{}: {} entries for {} layers", list->path(), types.size(), layers_
    ));
  }
  types.resize(static_cast<size_t>(layers_));
  return types;
}

std::optional<int64_t> KvFields::window_of(const std::string& type) const {
  if (type == "full_attention" || type == "attention" || type == "global") {
    return 0;
  }
  if (type == "sliding_attention" || type == "local" ||
      type == "sliding_window_attention") {
    int64_t own = window();
    if (own == 0) {
      unknown("the config has no sliding_window");
    }
    return own;
  }
  if (type == "chunked_attention") {
    return field("attention_chunk_size");
  }
  for (const char* fixed :
       {"linear_attention",
        "conv",
        "mamba",
        "recurrent",
        "moe",
        "mlp",
        "short_conv"}) {
    if (type == fixed) {
      return std::nullopt;
    }
  }
  unknown(fmt::format("the layer type {} is not described", quote(type)));
}

}  // namespace mlxcel::kv
