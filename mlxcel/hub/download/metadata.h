#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mlxcel/hub/download/digest.h"
#include "mlxcel/hub/download/limits.h"

namespace mlxcel::hub {

/// A file as the hub lists it.
struct RemoteFile {
  std::string path;
  std::optional<uint64_t> size;  ///< bytes; empty if the list doesn't say
  ContentId content;
};

/// The answer to a request for a revision's files.
struct RepositoryListing {
  /// Names the content for good; empty if the hub doesn't say.
  std::string commit;
  std::vector<RemoteFile> files;
};

/// Reads the JSON of GET /api/models/REPOSITORY/revision/REVISION?blobs=true.
/// `name` is what messages call it. Throws Error(invalid_input) for a wrong
/// format, for more files and longer names than the limits allow, and for two
/// files of the same name.
RepositoryListing parse_listing(
    std::string_view text, const std::string& name, const DownloadLimits& limits
);

}  // namespace mlxcel::hub
