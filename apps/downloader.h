#pragma once

#include <memory>
#include <string>

#include "mlxcel/hub/downloader.h"

namespace mlxcel::apps {

struct DownloaderOptions {
  std::string token;  ///< empty: the environment's
  /// Where lines about finished files go if no bars are shown: standard
  /// output, or, where that belongs to something else, standard error.
  bool lines_on_output = false;
};

/// What fetches models from the hub and shows its progress; null in a build
/// without libcurl.
std::unique_ptr<hub::Downloader> make_downloader(
    const DownloaderOptions& options = {}
);

}  // namespace mlxcel::apps
