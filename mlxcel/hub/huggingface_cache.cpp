#include "mlxcel/hub/huggingface_cache.h"

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/hub/places.h"

namespace mlxcel::hub {

namespace {

constexpr uint64_t kRefLimit = 4096;

// The commit that a ref names; nothing if there is no such ref.
std::optional<std::string> read_ref(const std::string& path) {
  if (!file_exists(path)) {
    return std::nullopt;
  }
  try {
    std::string text = read_file(path, kRefLimit);
    size_t end = text.find_last_not_of(" \t\r\n");
    text.erase(end == std::string::npos ? 0 : end + 1);
    return is_repository_part(text) ? std::optional(text) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool has_config(const std::string& directory) {
  return file_exists(join_path(directory, "config.json"));
}

}  // namespace

std::optional<std::string> huggingface_cache() {
  if (auto cache = folder_variable("HF_HUB_CACHE")) {
    return cache;
  }
  if (auto home = folder_variable("HF_HOME")) {
    return join_path(*home, "hub");
  }
  auto home = home_folder();
  if (!home) {
    return std::nullopt;
  }
  return join_path(*home, ".cache/huggingface/hub");
}

std::optional<std::string> find_snapshot(
    const std::string& cache,
    const Repository& repository,
    const std::string& revision
) {
  // The hub has no such ids; the folder's name would be that of others too.
  if (repository.id().find("--") != std::string::npos) {
    return std::nullopt;
  }
  check_revision(revision);
  std::string folder =
      join_path(cache, "models--" + repository.owner + "--" + repository.name);
  std::string snapshots = join_path(folder, "snapshots");
  std::string named = join_path(snapshots, revision);
  if (is_repository_part(revision) && has_config(named)) {
    return named;
  }
  auto commit = read_ref(join_path(folder, "refs/" + revision));
  if (!commit || !has_config(join_path(snapshots, *commit))) {
    return std::nullopt;
  }
  return join_path(snapshots, *commit);
}

}  // namespace mlxcel::hub
