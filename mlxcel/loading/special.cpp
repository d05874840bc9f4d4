#include "mlxcel/loading/special.h"

namespace mlxcel {

std::unique_ptr<LanguageModel> load_special_from_weights(
    const LoadRequest& request, WeightMap weights
) {
  return request.entry.family->load_weights(
      request.config, std::move(weights), request.backend
  );
}

}  // namespace mlxcel
