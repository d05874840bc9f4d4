#include "mlxcel/loading/preparation.h"

#include "mlxcel/weights/tied_embeddings.h"
#include "mlxcel/weights/transform/vendor.h"
#include "mlxcel/weights/transform/wrapper_names.h"

namespace mlxcel {

void prepare_text_weights(
    const Json& config, const DeviceFacts& device, WeightMap& weights
) {
  convert_vendor_formats(config, weights, device);
  unwrap_text_names(weights);
  restore_tied_embeddings(config, weights);
}

}  // namespace mlxcel
