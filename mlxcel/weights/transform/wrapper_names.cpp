#include "mlxcel/weights/transform/wrapper_names.h"

#include <array>

namespace mlxcel {

namespace {

struct Rename {
  std::string_view from;
  std::string_view to;
};

constexpr std::array kRenames = {
    Rename{"model.language_model.lm_head.", "lm_head."},
    Rename{"model.language_model.model.", "model."},
    Rename{"model.language_model.", "model."},
    Rename{"language_model.", ""},
    Rename{"model.lm_head.", "lm_head."},
};

}  // namespace

int64_t unwrap_text_names(WeightMap& weights) {
  std::vector<std::pair<std::string, std::string>> changes;
  for (const auto& [name, weight] : weights) {
    if (name.starts_with("model.layers.")) {
      return 0;
    }
    for (const Rename& rename : kRenames) {
      if (name.starts_with(rename.from)) {
        std::string to(rename.to);
        to += name.substr(rename.from.size());
        changes.emplace_back(name, std::move(to));
        break;
      }
    }
  }
  for (const auto& [from, to] : changes) {
    weights.rename(from, to);
  }
  return static_cast<int64_t>(changes.size());
}

}  // namespace mlxcel
