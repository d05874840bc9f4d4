#pragma once

#include "mlxcel/loading/load_request.h"

namespace mlxcel {

/// Families whose checkpoints don't fit the common pattern: each has a named
/// loader of its own.
std::unique_ptr<LanguageModel> load_nonstandard_from_dir(
    const LoadRequest& request
);

}  // namespace mlxcel
