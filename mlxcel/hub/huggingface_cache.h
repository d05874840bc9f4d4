#pragma once

#include <optional>
#include <string>

#include "mlxcel/hub/reference.h"

namespace mlxcel::hub {

/// The cache that Hugging Face's own programs keep: HF_HUB_CACHE, HF_HOME/hub
/// or ~/.cache/huggingface/hub. It is only read, never written to or deleted
/// from. Nothing if no variable is set and there is no HOME.
std::optional<std::string> huggingface_cache();

/// The folder of a repository's snapshot: models--OWNER--NAME/snapshots/R,
/// where R is the revision or what refs/REVISION holds. Nothing if there is
/// none or if it has no config.json. Its files are links into the repository's
/// blobs (core/containment.h).
std::optional<std::string> find_snapshot(
    const std::string& cache,
    const Repository& repository,
    const std::string& revision
);

}  // namespace mlxcel::hub
