#pragma once

#include <string>

namespace mlxcel {

/// Whether a file of a model directory may be read by way of links: `path`
/// with all its links followed lies below `directory`. The files of a Hugging
/// Face cache's snapshot (models--O--N/snapshots/REVISION) may also be links to
/// ../../blobs/ID of the same repository, where the name counts and not what
/// lies behind it: caches share blobs by links. False for a link to nothing.
bool stays_inside(const std::string& directory, const std::string& path);

}  // namespace mlxcel
