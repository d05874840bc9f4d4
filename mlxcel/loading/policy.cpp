#include "mlxcel/loading/policy.h"

#include <fmt/format.h>

#include "mlxcel/core/error.h"

namespace mlxcel {

ModelLoadPolicy model_load_policy(ModelType type) {
  const Descriptor& entry = descriptor(type);
  if (entry.status != Status::built) {
    fail(
        ErrorCode::unsupported,
        fmt::format(
            "[loading] {} is recognised but not supported yet",
            entry.display_name
        )
    );
  }
  return {
      type,
      entry.directory_route,
      entry.weight_route,
      entry.adapter_refusal,
  };
}

}  // namespace mlxcel
