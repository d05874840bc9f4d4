#include "mlxcel/loading/config_backed.h"

#include "mlxcel/config/config.h"
#include "mlxcel/loading/preparation.h"
#include "mlxcel/weights/quantization.h"
#include "mlxcel/weights/shards.h"

namespace mlxcel {

std::unique_ptr<LanguageModel> load_config_backed_from_dir(
    const LoadRequest& request
) {
  return load_config_backed_from_weights(
      request, load_weights(request.directory)
  );
}

std::unique_ptr<LanguageModel> load_config_backed_from_weights(
    const LoadRequest& request, WeightMap weights
) {
  prepare_text_weights(request.config, request.preparation(), weights);
  BuildInput input{
      text_config(request.config),
      weights,
      QuantConfig::from_config(request.config),
      request.backend,
  };
  return request.entry.family->build(input);
}

}  // namespace mlxcel
