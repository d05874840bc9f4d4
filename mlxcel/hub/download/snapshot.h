#pragma once

#include <memory>

#include "mlxcel/hub/download/endpoint.h"
#include "mlxcel/hub/download/limits.h"
#include "mlxcel/hub/download/trust.h"
#include "mlxcel/hub/download_progress.h"
#include "mlxcel/hub/downloader.h"

namespace mlxcel::hub {

/// Fetches the files of a repository from a hub. `progress` outlives it.
std::unique_ptr<Downloader> make_hub_downloader(
    Endpoint endpoint,
    ExtraTrust trust,
    const DownloadLimits& limits,
    DownloadProgress& progress
);

/// The same with what the environment says.
std::unique_ptr<Downloader> make_hub_downloader(
    const std::string& token, DownloadProgress& progress
);

}  // namespace mlxcel::hub
