#include "mlxcel/loading/estimate/kv_need.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "mlxcel/backend/state.h"
#include "mlxcel/config/config.h"
#include "mlxcel/config/fields.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/loading/detect.h"
#include "mlxcel/loading/estimate/kv_fields.h"
#include "mlxcel/loading/signals.h"

namespace mlxcel {

namespace {

using kv::kMostWidth;
using kv::Rule;
using kv::unknown;

// Layers far above those of any published model, and values of one of them.
constexpr int64_t kMostLayers = 1 << 16;
constexpr int64_t kMostValues = int64_t{1} << 32;

class Describer : private kv::KvFields {
 public:
  Describer(const Descriptor& row, const Rule& rule, const Json& config)
      : KvFields(rule, config), row_(row) {}

  KvNeed describe() {
    switch (rule_.kind) {
      case kv::Kind::none:
        need_.detail = rule_.note;
        break;
      case kv::Kind::unknown:
        unknown(fmt::format("{}: {}", row_.display_name, rule_.note));
      case kv::Kind::attention:
        attention();
        break;
      case kv::Kind::latent:
        latent();
        break;
      case kv::Kind::jamba:
        each([&](int64_t i) {
          int64_t period = field("attn_layer_period");
          return i % period == optional_field("attn_layer_offset").value_or(0);
        });
        break;
      case kv::Kind::interval:
        interval();
        break;
      case kv::Kind::layer_types:
        each_type();
        break;
      case kv::Kind::nemotron_h:
        pattern();
        break;
      case kv::Kind::griffin:
        griffin();
        break;
      case kv::Kind::group_of_linear:
        each([&](int64_t i) {
          int64_t group = field("layer_group_size");
          return (i + 1) % group == 0 || i >= layers_ / group * group;
        });
        break;
      case kv::Kind::kimi_linear:
        kimi_linear();
        break;
      case kv::Kind::attention_list:
        attention_list();
        break;
      case kv::Kind::gemma4:
        gemma4();
        break;
      case kv::Kind::shared_tail:
        shared_tail();
        break;
      case kv::Kind::mimo_flash:
        mimo_flash();
        break;
      case kv::Kind::per_layer_heads:
        per_layer_heads();
        break;
      case kv::Kind::nas:
        nas();
        break;
      case kv::Kind::cross_layer:
        cross_layer();
        break;
      case kv::Kind::plamo2:
        plamo2();
        break;
      case kv::Kind::step3p5:
        step3p5();
        break;
      case kv::Kind::baichuan:
        baichuan();
        break;
      case kv::Kind::whisper:
        whisper();
        break;
    }
    need_.known = true;
    if (need_.detail.empty()) {
      need_.detail = summary();
    }
    return std::move(need_);
  }

 private:
  void add(int64_t values, int64_t window = 0) {
    if (values < 0 || values > kMostValues) {
      unknown(fmt::format("{} values a token are no layer's", values));
    }
    need_.layers.push_back({values, window});
  }

  void from_types(const std::vector<std::string>& types, int64_t values) {
    for (const std::string& type : types) {
      if (auto own = window_of(type)) {
        add(values, *own);
      }
    }
  }

  void attention() {
    read_layers();
    int64_t values = standard_values();
    auto types = layer_types();
    bool obeys = rule_.windows != kv::Windows::never;
    if (!types.empty() && obeys &&
        !(rule_.windows == kv::Windows::opt_in && !opted_in())) {
      from_types(types, values);
      return;
    }
    for (int64_t i = 0; i < layers_; ++i) {
      add(values, pattern_window(i));
    }
  }

  bool opted_in() const {
    auto use = config_.find("use_sliding_window");
    return use && use->is_bool() && use->as_bool();
  }

  // Where the config lists no layer types.
  int64_t pattern_window(int64_t i) const {
    switch (rule_.windows) {
      case kv::Windows::never:
      case kv::Windows::listed:
        return 0;
      case kv::Windows::all:
        return window();
      case kv::Windows::opt_in:
        return opted_in() &&
                       i >= optional_field("max_window_layers").value_or(0)
                   ? window()
                   : 0;
      case kv::Windows::alternate:
        return i % 2 == 0 ? window() : 0;
      case kv::Windows::chunks:
        return is_chunked(i) ? optional_field("attention_chunk_size")
                                   .value_or(rule_.default_window)
                             : 0;
      case kv::Windows::every: {
        if (auto letters = config_.find("sliding_window_pattern");
            letters && letters->is_string()) {
          return lettered_window(letters->as_string(), i);
        }
        int64_t period = optional_field(
                             "sliding_window_pattern _sliding_window_pattern "
                             "global_attn_every_n_layers"
        )
                             .value_or(rule_.period);
        if (period == 0 || (i + 1) % period == 0) {
          return 0;
        }
        int64_t own = window();
        return own > 0 ? own : rule_.default_window;
      }
    }
    return 0;
  }

  // Llama 4: layers with rotary embedding see the chunk they are in.
  bool is_chunked(int64_t i) const {
    auto list = config_.find("no_rope_layers");
    if (list && list->is_array() && list->size() > 0) {
      std::vector<Json> flags = list->elements();
      const Json& flag = flags[static_cast<size_t>(i) % flags.size()];
      return flag.is_integer() && flag.as_int() != 0;
    }
    int64_t interval = optional_field("no_rope_layer_interval").value_or(4);
    return interval > 0 && (i + 1) % interval != 0;
  }

  // EXAONE 4: "LLLG" repeats; L slides, and the last layer never does.
  int64_t lettered_window(const std::string& letters, int64_t i) const {
    bool slides = !letters.empty() &&
                  letters[static_cast<size_t>(i) % letters.size()] == 'L' &&
                  i + 1 < layers_;
    return slides ? window() : 0;
  }

  void latent() {
    read_layers();
    int64_t values = latent_values();
    for (int64_t i = 0; i < layers_ * rule_.caches_per_layer; ++i) {
      add(values);
    }
    need_.detail = fmt::format(
        "compressed latent: {} layers of {} values a token",
        need_.layers.size(),
        values
    );
  }

  // Layers of which `keeps` says that they attend.
  template <typename Keeps>
  void each(Keeps&& keeps) {
    read_layers();
    int64_t values = standard_values();
    for (int64_t i = 0; i < layers_; ++i) {
      if (keeps(i)) {
        add(values);
      }
    }
  }

  void interval() {
    read_layers();
    auto types = layer_types();
    if (!types.empty()) {
      from_types(types, standard_values());
      return;
    }
    int64_t period = optional_field("full_attention_interval").value_or(4);
    each([&](int64_t i) { return period > 0 && (i + 1) % period == 0; });
  }

  void each_type() {
    read_layers();
    auto types = layer_types();
    if (types.empty()) {
      if (auto list = config_.find("full_attn_idxs");
          list && list->is_array()) {
        int64_t values = standard_values();
        for (size_t i = 0; i < list->size(); ++i) {
          add(values);
        }
        return;
      }
      unknown("the config has no layer_types");
    }
    from_types(types, standard_values());
  }

  void pattern() {
    std::vector<char> codes = layer_pattern(config_);
    if (codes.empty()) {
      unknown("the config has no hybrid_override_pattern");
    }
    layers_ = static_cast<int64_t>(codes.size());
    int64_t values = standard_values();
    for (char code : codes) {
      if (code == '*') {
        add(values);
      }
    }
  }

  void griffin() {
    read_layers();
    auto list = config_.find("block_types");
    if (!list || !list->is_array() || list->size() == 0) {
      list = config_.find("_block_types");
    }
    if (!list || !list->is_array() || list->size() == 0) {
      unknown("the config has no block_types");
    }
    std::vector<Json> kinds = list->elements();
    int64_t values = standard_values();
    for (int64_t i = 0; i < layers_; ++i) {
      const Json& kind = kinds[static_cast<size_t>(i) % kinds.size()];
      if (kind.is_string() && kind.as_string() == "attention") {
        add(values, field("attention_window_size"));
      }
    }
  }

  void kimi_linear() {
    read_layers();
    auto linear = config_.find("linear_attn_config");
    auto full = linear && linear->is_object() ? linear->find("full_attn_layers")
                                              : std::nullopt;
    if (!full || !full->is_array()) {
      unknown("the config has no linear_attn_config.full_attn_layers");
    }
    int64_t values = latent_values();
    for (size_t i = 0; i < full->size(); ++i) {
      add(values);
    }
  }

  void attention_list() {
    read_layers();
    auto list = config_.find("attn_type_list");
    if (!list || !list->is_array()) {
      unknown("the config has no attn_type_list");
    }
    int64_t values = standard_values();
    for (const Json& kind : list->elements()) {
      if (kind.is_integer() && kind.as_int() == 1) {
        add(values);
      }
    }
  }

  int64_t own_layers() const {
    int64_t shared = optional_field("num_kv_shared_layers").value_or(0);
    if (shared > layers_) {
      unknown("num_kv_shared_layers is more than there are layers");
    }
    return layers_ - shared;
  }

  // The last layers read the state of earlier ones.
  void shared_tail() {
    read_layers();
    auto types = layer_types();
    if (types.empty()) {
      unknown("the config has no layer_types");
    }
    types.resize(static_cast<size_t>(own_layers()));
    from_types(types, standard_values());
  }

  // Global layers have heads of another size and number.
  void gemma4() {
    read_layers();
    auto types = layer_types();
    if (types.empty()) {
      unknown("the config has no layer_types");
    }
    types.resize(static_cast<size_t>(own_layers()));
    int64_t global_heads =
        optional_field("num_global_key_value_heads").value_or(0);
    int64_t global_dim = optional_field("global_head_dim").value_or(0);
    for (const std::string& type : types) {
      auto found = window_of(type);
      if (!found) {
        unknown(fmt::format("the layer type {} is not described", quote(type)));
      }
      int64_t own = *found;
      bool global = own == 0;
      int64_t count = global && global_heads > 0 ? global_heads : kv_heads();
      int64_t dim = global && global_dim > 0 ? global_dim : head_dim();
      add(2 * count * dim, own);
    }
  }

  void mimo_flash() {
    read_layers();
    auto list = config_.find("hybrid_layer_pattern");
    if (!list || !list->is_array()) {
      unknown("the config has no hybrid_layer_pattern");
    }
    int64_t slide = field("swa_num_key_value_heads") *
                    (field("swa_head_dim") + field("swa_v_head_dim"));
    int64_t full = standard_values();
    for (const Json& kind : list->elements()) {
      bool slides = kind.is_integer() && kind.as_int() == 1;
      add(slides ? slide : full,
          slides ? field("sliding_window_size "
                         "sliding_window")
                 : 0);
    }
  }

  void per_layer_heads() {
    read_layers();
    auto list = config_.find("num_kv_heads");
    int64_t dim = field("head_dim");
    if (!list || !list->is_array()) {
      unknown("the config has no list num_kv_heads");
    }
    for (const Json& count : list->elements()) {
      if (!count.is_integer()) {
        unknown(fmt::format("{}: expected a count", count.path()));
      }
      add(2 * count.as_int(0, kMostWidth) * dim);
    }
  }

  void nas() {
    auto blocks = config_.find("block_configs");
    if (!blocks || !blocks->is_array()) {
      unknown("the config has no block_configs");
    }
    int64_t heads_in_all = heads();
    int64_t dim = head_dim();
    for (const Json& block : blocks->elements()) {
      auto own = block.find("attention");
      if (!own || is_flag(*own, "no_op", true) ||
          is_flag(*own, "replace_with_linear", true)) {
        continue;
      }
      auto group = count_of(*own, "n_heads_in_group");
      if (!group || *group < 1) {
        unknown(fmt::format("{}.n_heads_in_group is missing", own->path()));
      }
      add(2 * (heads_in_all / *group) * dim);
    }
  }

  // One layer of every few has keys and values, which the others share.
  void cross_layer() {
    bool shares = is_flag(config_, "use_cla", true);
    int64_t factor =
        shares ? optional_field("cla_share_factor").value_or(2) : 1;
    each([&](int64_t i) { return i % std::max<int64_t>(factor, 1) == 0; });
  }

  void plamo2() {
    int64_t step = optional_field("mamba_step").value_or(2);
    bool mamba = !is_flag(config_, "mamba_enabled", false);
    each([&](int64_t i) {
      bool few = layers_ <= step / 2;
      return !mamba || step < 1 ||
             (few ? i == layers_ - 1 : i % step == step / 2);
    });
  }

  void step3p5() {
    read_layers();
    int64_t dim = field("head_dim");
    int64_t full = field("num_attention_groups");
    auto other = config_.find("attention_other_setting");
    auto own = other && other->is_object()
                   ? count_of(*other, "num_attention_groups")
                   : std::nullopt;
    auto types = layer_types();
    for (int64_t i = 0; i < layers_; ++i) {
      bool slides = types.empty()
                        ? i % 2 == 0
                        : types[static_cast<size_t>(i)] == "sliding_attention";
      int64_t heads =
          slides ? std::clamp<int64_t>(own.value_or(full), 0, kMostWidth)
                 : full;
      add(2 * heads * dim, slides ? field("sliding_window") : 0);
    }
  }

  void baichuan() {
    read_layers();
    auto list = config_.find("sliding_window_layers");
    std::vector<bool> slides(static_cast<size_t>(layers_));
    if (list && list->is_array()) {
      for (const Json& index : list->elements()) {
        if (!index.is_integer()) {
          unknown(fmt::format("{}: expected a layer", index.path()));
        }
        slides[static_cast<size_t>(index.as_int(0, layers_ - 1))] = true;
      }
    }
    int64_t width = field("hidden_size");
    for (bool own : slides) {
      int64_t queries =
          own ? optional_field("num_swa_attention_heads").value_or(heads())
              : heads();
      int64_t keys =
          own ? optional_field("num_swa_key_value_heads").value_or(kv_heads())
              : kv_heads();
      add(2 * keys * (width / std::max<int64_t>(queries, 1)),
          own ? field("sliding_window") : 0);
    }
  }

  // Each decoder layer keeps its own tokens and, once, the encoder's frames.
  void whisper() {
    int64_t width = field("d_model n_text_state");
    int64_t count = field("decoder_layers n_text_layer");
    int64_t tokens =
        optional_field("max_target_positions n_text_ctx").value_or(448);
    int64_t frames =
        optional_field("max_source_positions n_audio_ctx").value_or(1500);
    for (int64_t i = 0; i < std::min(count, kMostLayers); ++i) {
      add(2 * width, tokens);
    }
    need_.detail = fmt::format(
        "{} decoder layers of at most {} tokens; the {} frames that the "
        "encoder gives are not counted",
        count,
        tokens,
        frames
    );
  }

  std::string summary() const {
    size_t sliding = 0;
    int64_t window = 0;
    for (const KvLayer& layer : need_.layers) {
      if (layer.window > 0) {
        ++sliding;
        window = std::max(window, layer.window);
      }
    }
    if (need_.layers.empty()) {
      return "no layer keeps anything per token";
    }
    std::string text;
    auto total = std::max<size_t>(
        need_.layers.size(), static_cast<size_t>(std::max<int64_t>(layers_, 0))
    );
    if (need_.layers.size() < total) {
      text = fmt::format(
          "hybrid: {} of {} layers attend", need_.layers.size(), total
      );
    } else {
      text = fmt::format("{} layers", need_.layers.size());
    }
    if (sliding > 0) {
      text += fmt::format(
          ", {} of them sliding, capped at {} tokens", sliding, window
      );
    }
    return text;
  }

  const Descriptor& row_;
  KvNeed need_;
};

// The row of the text model inside a vision model, by its own model_type.
ModelType text_row(ModelType type, const Json& config) {
  const Descriptor& row = descriptor(type);
  if (kv::rule_of(type).kind != kv::Kind::unknown ||
      row.category != Category::vlm) {
    return type;
  }
  std::string name = lower_model_type(text_config(config));
  constexpr std::string_view kText = "_text";
  for (int round = 0; round < 2; ++round) {
    const Descriptor* found = find_model_type(name);
    if (found != nullptr && found->type != type &&
        kv::rule_of(found->type).kind != kv::Kind::unknown) {
      return found->type;
    }
    if (!name.ends_with(kText)) {
      break;
    }
    name.resize(name.size() - kText.size());
  }
  return row.text_variant != ModelType::count ? row.text_variant : type;
}

}  // namespace

int64_t KvNeed::values_per_token() const {
  int64_t sum = 0;
  for (const KvLayer& layer : layers) {
    sum += layer.window > 0 ? 0 : layer.values;
  }
  return sum;
}

uint64_t KvNeed::values(int64_t context) const {
  uint64_t sum = 0;
  for (const KvLayer& layer : layers) {
    int64_t tokens =
        layer.window > 0 ? std::min(context, layer.window) : context;
    auto kept = static_cast<uint64_t>(round_up(tokens, backend::kBlockTokens));
    auto values = checked_mul(static_cast<uint64_t>(layer.values), kept);
    sum = checked_add(sum, values.value_or(UINT64_MAX)).value_or(UINT64_MAX);
  }
  return sum;
}

KvNeed kv_need(ModelType type, const Json& config) {
  try {
    if (type == ModelType::mistral3) {
      type = mistral3_decoder(config);
    }
    ModelType own = text_row(type, config);
    Json text = text_config(config);
    kv::Rule rule = kv::rule_of(own);
    return Describer(descriptor(own), rule, text).describe();
  } catch (const kv::Unknown& missing) {
    KvNeed need;
    need.detail = missing.why;
    return need;
  } catch (const Error& error) {
    KvNeed need;
    need.detail = error.message();
    return need;
  }
}

}  // namespace mlxcel
