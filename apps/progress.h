#pragma once

#include <memory>

#include "mlxcel/hub/download_progress.h"

namespace mlxcel::apps {

/// Bars on standard error if that is a terminal and neither
/// MLXCEL_NO_PROGRESS nor NO_COLOR is set and CI is not true or 1; else a
/// line for each finished file, on standard output or standard error.
std::unique_ptr<hub::DownloadProgress> make_progress(bool lines_on_output);

}  // namespace mlxcel::apps
