#include "mlxcel/loading/guards.h"

#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/config/config.h"
#include "mlxcel/core/error.h"
#include "mlxcel/loading/signals.h"
#include "mlxcel/weights/shards.h"

namespace mlxcel {

namespace {

constexpr size_t kEchoed = 64;

std::string echo(const Json& value) {
  return value.is_string() ? quote(value.as_string(), kEchoed)
                           : value.preview().substr(0, kEchoed);
}

bool window_is_live(const Json& config) {
  auto use = config.find("use_sliding_window");
  bool used = use && !(use->is_bool() && !use->as_bool());
  if (!used || !config.has("sliding_window")) {
    return false;
  }
  auto layers = count_of(config, "num_hidden_layers");
  auto first = config.has("max_window_layers")
                   ? count_of(config, "max_window_layers")
                   : 0;
  return !layers || !first || *first < *layers;
}

void check_gate(const Json& place) {
  auto gate = place.find("output_gate_type");
  if (gate && !(gate->is_string() && (gate->as_string() == "silu" ||
                                      gate->as_string() == "swish"))) {
    gate->reject(fmt::format(
        "{} is not implemented, only silu (swish) is; the output would be "
        "wrong",
        echo(*gate)
    ));
  }
  auto rope = place.find("rope_parameters");
  auto order = rope ? rope->find("mrope_interleaved") : std::nullopt;
  if (order && !is_flag(*rope, "mrope_interleaved", true)) {
    order->reject(fmt::format(
        "{} is not implemented, only true (interleaved) is; the output "
        "would be wrong",
        echo(*order)
    ));
  }
}

bool any_is(
    const std::vector<std::string>& names, std::string_view prefix, bool whole
) {
  auto at = std::lower_bound(names.begin(), names.end(), prefix);
  return at != names.end() && (whole ? *at == prefix : at->starts_with(prefix));
}

}  // namespace

void guard_iquest(const Json& config) {
  constexpr const char* kAccepted =
      "the Llama decoder that this model shares would give other text; configs "
      "without clip_qkv and without a live sliding window are accepted";
  if (auto clip = config.find("clip_qkv")) {
    clip->reject(
        fmt::format("{} is not implemented: {}", echo(*clip), kAccepted)
    );
  }
  if (window_is_live(config)) {
    Json window = config.at("sliding_window");
    window.reject(fmt::format(
        "{} with use_sliding_window {} is not implemented: {}",
        echo(window),
        echo(config.at("use_sliding_window")),
        kAccepted
    ));
  }
}

void guard_iquest_loop(const Json& config) {
  auto loops = config.find("loop_num");
  if (loops && count_of(config, "loop_num") != 2) {
    loops->reject(fmt::format(
        "{} is not implemented, only 2 (or no loop_num) is; the shared "
        "decoder would give other text",
        echo(*loops)
    ));
  }
}

void guard_qwen3_5(const Json& config) {
  check_gate(config);
  check_gate(text_config(config));
  auto only = config.find("language_model_only");
  if (only && !only->is_bool() && config.has("vision_config")) {
    only->reject(fmt::format(
        "expected true or false, got {}; whether the vision tower is "
        "loaded depends on it",
        echo(*only)
    ));
  }
}

void guard_llava(const Json& config) {
  auto text = config.find("text_config");
  auto type = text ? text->find("model_type") : std::nullopt;
  if (!type) {
    return;
  }
  std::string name = lower_model_type(*text);
  if (name != "llama" && name != "mistral" && name != "qwen2") {
    type->reject(fmt::format(
        "LLaVA on a text model of type {} is not supported, only on "
        "llama, mistral and qwen2",
        echo(*type)
    ));
  }
}

void guard_xlm_roberta(const Json& config) {
  auto kind = config.find("position_embedding_type");
  if (kind && kind->is_string() && kind->as_string() == "rotary") {
    kind->reject(
        "XLM-RoBERTa with rotary positions (Jina Embeddings v3) is another "
        "model, which is not supported"
    );
  }
}

void guard_inkling(const std::string& directory, const Json& config) {
  auto names = directory.empty() ? std::nullopt : tensor_names(directory);
  if (!names) {
    return;
  }
  bool heads = any_is(*names, "model.mtp.layers.", false) ||
               any_is(*names, "mtp.layers.", false);
  bool body = any_is(*names, "model.llm.embed.weight", true) ||
              any_is(*names, "model.embed_tokens.weight", true) ||
              any_is(*names, "model.llm.layers.", false) ||
              any_is(*names, "model.layers.", false);
  if (heads && !body) {
    fail(
        ErrorCode::unsupported,
        fmt::format(
            "[config] {}: the directory holds only the MTP drafter of Inkling "
            "(mtp.layers without embedding and layers). Pass the full "
            "checkpoint as the model and this directory as the draft model, "
            "with the draft kind mtp",
            config.document_name()
        )
    );
  }
}

}  // namespace mlxcel
