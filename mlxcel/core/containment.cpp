#include "mlxcel/core/containment.h"

#include <algorithm>
#include <filesystem>

namespace mlxcel {

namespace fs = std::filesystem;

namespace {

bool is_repository_folder(const fs::path& path) {
  return path.filename().string().starts_with("models--");
}

// The repository folder of a snapshot; empty if it is none.
fs::path repository_of(const fs::path& directory) {
  fs::path snapshots = directory.parent_path();
  bool snapshot = snapshots.filename() == "snapshots" &&
                  is_repository_folder(snapshots.parent_path());
  return snapshot ? snapshots.parent_path() : fs::path();
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
  fs::path blobs = target.parent_path();
  if (blobs.filename() != "blobs") {
    return false;
  }
  fs::path own = repository_of(root);
  return own.empty() ? is_repository_folder(blobs.parent_path())
                     : blobs.parent_path() == own;
}

}  // namespace mlxcel
