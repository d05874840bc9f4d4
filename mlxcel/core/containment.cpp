#include "mlxcel/core/containment.h"

#include <algorithm>
#include <filesystem>

namespace mlxcel {

namespace fs = std::filesystem;

namespace {

// The blobs of the repository of a snapshot; empty if it is none.
fs::path blobs_of(const fs::path& directory) {
  fs::path snapshots = directory.parent_path();
  fs::path repository = snapshots.parent_path();
  bool snapshot = snapshots.filename() == "snapshots" &&
                  repository.filename().string().starts_with("models--");
  return snapshot ? repository / "blobs" : fs::path();
}

// The place that a link names, itself perhaps a link; empty for anything else.
fs::path named_by(const fs::path& link) {
  std::error_code error;
  fs::path target = fs::read_symlink(link, error);
  fs::path folder =
      error ? fs::path() : fs::canonical(link.parent_path(), error);
  return error ? fs::path() : (folder / target).lexically_normal();
}

}  // namespace

bool stays_inside(const std::string& directory, const std::string& path) {
  std::error_code error;
  fs::path root = fs::canonical(directory, error);
  fs::path target = error ? fs::path() : fs::canonical(path, error);
  if (error) {
    return false;
  }
  auto [at, rest] =
      std::mismatch(root.begin(), root.end(), target.begin(), target.end());
  if (at == root.end()) {
    return true;
  }
  fs::path blobs = blobs_of(root);
  return !blobs.empty() && (named_by(path).parent_path() == blobs ||
                            target.parent_path() == blobs);
}

}  // namespace mlxcel
