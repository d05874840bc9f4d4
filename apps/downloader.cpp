#include "apps/downloader.h"

namespace mlxcel::apps {

std::unique_ptr<hub::Downloader> make_downloader() {
  return nullptr;
}

}  // namespace mlxcel::apps
