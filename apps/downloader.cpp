#include "apps/downloader.h"

#include "apps/progress.h"
#include "mlxcel/hub/built_downloader.h"

namespace mlxcel::apps {

namespace {

// The environment is looked at when something is fetched: a mistake in it is
// no matter of models that are there.
class VisibleDownloader : public hub::Downloader {
 public:
  VisibleDownloader(
      hub::DownloaderFactory factory, const DownloaderOptions& options
  )
      : factory_(factory), options_(options) {}

  void download(const hub::DownloadRequest& request) override {
    auto progress = make_progress(options_.lines_on_output);
    factory_(options_.token, *progress)->download(request);
  }

 private:
  hub::DownloaderFactory factory_;
  DownloaderOptions options_;
};

}  // namespace

std::unique_ptr<hub::Downloader> make_downloader(
    const DownloaderOptions& options
) {
  hub::DownloaderFactory factory = hub::built_downloader();
  if (factory == nullptr) {
    return nullptr;
  }
  return std::make_unique<VisibleDownloader>(factory, options);
}

}  // namespace mlxcel::apps
