#include "mlxcel/loading/preparation.h"

#include "mlxcel/core/os.h"
#include "mlxcel/weights/tied_embeddings.h"
#include "mlxcel/weights/transform/expert_stacks.h"
#include "mlxcel/weights/transform/half_policy.h"
#include "mlxcel/weights/transform/shared_kv.h"
#include "mlxcel/weights/transform/vendor.h"
#include "mlxcel/weights/transform/wrapper_names.h"

namespace mlxcel {

void prepare_text_weights(
    const Json& config, const Preparation& how, WeightMap& weights
) {
  convert_vendor_formats(config, weights, how.device);
  unwrap_text_names(weights);
  drop_shared_kv(config, weights);
  stack_experts(weights, declared_experts(config));
  restore_tied_embeddings(config, weights);
  for (const WeightEdit& edit : how.edits) {
    edit(config, weights);
  }
  apply_half_policy(
      half_policy(how.device, config, how.keeps_bf16, os::environment),
      weights,
      os::environment
  );
}

}  // namespace mlxcel
