#include "mlxcel/weights/transform/wrapper_names.h"

#include <algorithm>
#include <array>

#include "mlxcel/weights/transform/planes_beside.h"

namespace mlxcel {

namespace {

constexpr std::array kRenames = {
    PrefixRename{"model.language_model.lm_head.", "lm_head."},
    PrefixRename{"model.language_model.model.", "model."},
    PrefixRename{"model.language_model.", "model."},
    PrefixRename{"language_model.", ""},
    PrefixRename{"model.lm_head.", "lm_head."},
};

}  // namespace

int64_t unwrap_text_names(WeightMap& weights) {
  bool plain = std::any_of(weights.begin(), weights.end(), [](auto& tensor) {
    return tensor.first.starts_with("model.layers.");
  });
  return plain ? 0 : rename_prefixes(weights, kRenames);
}

}  // namespace mlxcel
