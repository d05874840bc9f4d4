#pragma once

#include <string>

namespace mlxcel {

/// Whether a file of a model directory may be read by way of links: `path`
/// with all its links followed lies below `directory`, or is a blob of a
/// Hugging Face cache. Of a snapshot (models--O--N/snapshots/REVISION), whose
/// files are links to ../../blobs/ID, these are its own repository's blobs
/// only. Elsewhere any models--O--N/blobs/ID will do: older hub clients made
/// folders of such links. False for a link to nothing.
bool stays_inside(const std::string& directory, const std::string& path);

}  // namespace mlxcel
