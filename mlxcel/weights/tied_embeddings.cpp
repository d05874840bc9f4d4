#include "mlxcel/weights/tied_embeddings.h"

#include "mlxcel/core/json.h"

namespace mlxcel {

namespace {

bool explicitly_untied(const Json& config) {
  constexpr const char* kFlag = "tie_word_embeddings";
  auto flag = config.find(kFlag);
  if (!flag) {
    auto text = config.find("text_config");
    flag = text ? text->find(kFlag) : std::nullopt;
  }
  return flag && !flag->as_bool();
}

void restore_head(WeightMap& weights, const std::string& prefix) {
  if (weights.contains(prefix + "lm_head.weight")) {
    return;
  }
  for (const char* plane : {"weight", "scales", "biases", "global_scale"}) {
    const Weight* source = weights.find(prefix + "model.embed_tokens." + plane);
    if (source != nullptr) {
      weights.insert(prefix + "lm_head." + plane, *source);
    }
  }
}

}  // namespace

void restore_tied_embeddings(const Json& config, WeightMap& weights) {
  if (explicitly_untied(config)) {
    return;
  }
  restore_head(weights, "");
  restore_head(weights, "language_model.");
}

}  // namespace mlxcel
