#pragma once

#include <memory>

#include "mlxcel/hub/downloader.h"

namespace mlxcel::apps {

/// What fetches models from the hub; null in a build without libcurl.
std::unique_ptr<hub::Downloader> make_downloader();

}  // namespace mlxcel::apps
