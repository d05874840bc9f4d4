#pragma once

#include "mlxcel/loading/load_request.h"

namespace mlxcel {

/// Vision-language families: each has a loader that binds encoder, decoder and
/// connector; towers stay lazy until the first image.
std::unique_ptr<LanguageModel> load_vlm_from_dir(const LoadRequest& request);

}  // namespace mlxcel
