#pragma once

#include <memory>
#include <string>

#include "mlxcel/hub/download_progress.h"
#include "mlxcel/hub/downloader.h"

namespace mlxcel::hub {

/// Makes a downloader that tells `progress`, which outlives it. An empty
/// token stands for the environment's. Throws Error if the endpoint, the
/// token or the certificates of the environment are unusable.
using DownloaderFactory = std::unique_ptr<Downloader> (*)(
    const std::string& token, DownloadProgress& progress
);

/// Null where the program is built without the downloader.
DownloaderFactory built_downloader();

}  // namespace mlxcel::hub
