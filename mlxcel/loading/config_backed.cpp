#include "mlxcel/loading/config_backed.h"

#include "mlxcel/config/config.h"
#include "mlxcel/weights/quantization.h"
#include "mlxcel/weights/shards.h"
#include "mlxcel/weights/tied_embeddings.h"
#include "mlxcel/weights/transform/vendor.h"
#include "mlxcel/weights/transform/wrapper_names.h"

namespace mlxcel {

namespace {

DeviceFacts device_facts(const LoadRequest& request) {
  DeviceFacts facts;
  if (request.backend->name() == "cuda") {
    facts.kind = DeviceKind::cuda;
  }
  return facts;
}

}  // namespace

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
  convert_vendor_formats(request.config, weights, device_facts(request));
  unwrap_text_names(weights);
  restore_tied_embeddings(request.config, weights);
  BuildInput input{
      text_config(request.config),
      weights,
      QuantConfig::from_config(request.config),
      request.backend,
  };
  return request.entry.family->build(input);
}

}  // namespace mlxcel
