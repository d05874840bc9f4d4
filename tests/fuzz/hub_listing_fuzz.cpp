#include <string>

#include "mlxcel/hub/download/limits.h"
#include "mlxcel/hub/download/metadata.h"
#include "mlxcel/hub/download/selection.h"
#include "tests/fuzz/fuzz.h"

// What a hub answers when asked for the files of a revision.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mlxcel;
  fuzz::attempt([&] {
    hub::RepositoryListing listing = hub::parse_listing(
        fuzz::as_text(data, size), "list", hub::DownloadLimits()
    );
    std::vector<std::string> paths;
    for (const hub::RemoteFile& file : listing.files) {
      paths.push_back(file.path);
    }
    std::vector<std::string> unsafe;
    for (const std::string& path : hub::select_files(paths, {}, unsafe)) {
      fuzz::require(!path.empty() && path.front() != '/');
      fuzz::require(path.find('\0') == std::string::npos);
      fuzz::require(("/" + path + "/").find("/../") == std::string::npos);
    }
  });
  return 0;
}
