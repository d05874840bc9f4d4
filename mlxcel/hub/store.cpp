#include "mlxcel/hub/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/os.h"
#include "mlxcel/hub/directory_lock.h"
#include "mlxcel/hub/places.h"

namespace mlxcel::hub {

namespace {

constexpr int kMaxDepth = 16;
constexpr const char* kMainRevision = "main";
constexpr const char* kRevisionFile = ".mlxcel-revision";
constexpr uint64_t kRevisionLimit = 4096;

bool is_model(const std::string& directory) {
  return file_exists(join_path(directory, "config.json"));
}

void measure(StoreEntry& entry, const std::string& directory, int depth) {
  for (const std::string& name : os::list_directory(directory)) {
    std::string path = join_path(directory, name);
    os::FileInfo self;
    os::FileInfo target;
    if (!os::stat_path(path, self, false) || !os::stat_path(path, target)) {
      continue;
    }
    if (self.directory && depth < kMaxDepth) {
      measure(entry, path, depth + 1);
    } else if (target.regular) {
      entry.size = checked_add(entry.size, target.size).value_or(UINT64_MAX);
      entry.modified =
          std::max(entry.modified.value_or(target.modified), target.modified);
    }
  }
}

StoreEntry measured(std::string id, std::string path) {
  StoreEntry entry{std::move(id), std::move(path)};
  measure(entry, entry.path, 0);
  return entry;
}

// Subfolders whose names can be a side of OWNER/NAME; hidden ones are not
// models but what programs keep there.
std::vector<std::string> folders(const std::string& directory) {
  std::vector<std::string> names;
  for (std::string& name : os::list_directory(directory)) {
    if (name.front() != '.' && is_repository_part(name) &&
        directory_exists(join_path(directory, name))) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

bool is_link(const std::string& path) {
  os::FileInfo info;
  return os::stat_path(path, info, false) && info.symlink;
}

bool before(const StoreEntry& a, const StoreEntry& b, StoreOrder order) {
  if (order == StoreOrder::size && a.size != b.size) {
    return a.size > b.size;
  }
  // An empty optional is less than any other.
  if (order == StoreOrder::modified && a.modified != b.modified) {
    return a.modified > b.modified;
  }
  return a.id < b.id;
}

void remove_empty_entry(const std::string& directory) {
  // Links are what somebody put there.
  std::string owner = parent_path(directory);
  if (!directory_exists(directory) || is_link(directory) || is_link(owner)) {
    return;
  }
  std::vector<std::string> names = os::list_directory(directory);
  if (names.empty() || names == std::vector<std::string>{kRevisionFile}) {
    os::remove_path(join_path(directory, kRevisionFile));
    os::remove_path(directory);
    os::remove_path(owner);
  }
}

}  // namespace

std::optional<std::string> store_root(const std::string& given) {
  if (!given.empty()) {
    return given;
  }
  if (auto root = folder_variable("MLXCEL_MODELS_DIR")) {
    return root;
  }
  if (auto cache = folder_variable("MLXCEL_CACHE_DIR")) {
    return join_path(*cache, "models");
  }
  auto home = home_folder();
  if (!home) {
    return std::nullopt;
  }
  return join_path(*home, ".cache/mlxcel/models");
}

std::string store_root_advice() {
  return "set MLXCEL_MODELS_DIR, MLXCEL_CACHE_DIR or HOME, or give "
         "--models-dir";
}

std::string require_store_root(const std::string& given) {
  auto root = store_root(given);
  if (!root) {
    fail(
        ErrorCode::usage,
        "[store] the model store has no place: " + store_root_advice()
    );
  }
  return *root;
}

std::vector<StoreEntry> list_store(const std::string& root) {
  std::vector<StoreEntry> entries;
  if (!path_exists(root)) {
    return entries;
  }
  for (const std::string& first : folders(root)) {
    std::string path = join_path(root, first);
    if (is_model(path)) {
      entries.push_back(measured(first, path));
      continue;
    }
    for (const std::string& second : folders(path)) {
      std::string model = join_path(path, second);
      if (is_model(model)) {
        entries.push_back(measured(Repository{first, second}.id(), model));
      }
    }
  }
  sort_entries(entries, StoreOrder::name);
  return entries;
}

void sort_entries(std::vector<StoreEntry>& entries, StoreOrder order) {
  std::sort(
      entries.begin(),
      entries.end(),
      [order](const StoreEntry& a, const StoreEntry& b) {
        return before(a, b, order);
      }
  );
}

std::string store_directory(
    const std::string& root, const Repository& repository
) {
  return join_path(join_path(root, repository.owner), repository.name);
}

std::optional<StoreEntry> find_entry(
    const std::string& root, const Reference& reference
) {
  const Repository& repository = reference.repository;
  std::string path = store_directory(root, repository);
  if (directory_exists(path)) {
    return measured(repository.id(), path);
  }
  std::string alone = join_path(root, repository.name);
  if (reference.expanded && is_model(alone)) {
    return measured(repository.name, alone);
  }
  return std::nullopt;
}

std::optional<std::string> noted_revision(const std::string& directory) {
  std::string path = join_path(directory, kRevisionFile);
  if (!path_exists(path)) {
    return std::nullopt;
  }
  std::string revision = read_file(path, kRevisionLimit);
  if (!is_revision(revision)) {
    fail(
        ErrorCode::invalid_input,
        fmt::format("[store] {}: {} is no revision", path, quote(revision))
    );
  }
  return revision;
}

std::string revision_to_fetch(
    const Repository& repository,
    const std::string& directory,
    const std::string& asked
) {
  bool exists = path_exists(directory);
  auto there = exists ? noted_revision(directory) : std::nullopt;
  if (asked.empty()) {
    return there.value_or(kMainRevision);
  }
  if (!exists || there == asked) {
    return asked;
  }
  fail(
      ErrorCode::unsupported,
      fmt::format(
          "[store] {}: the store keeps one revision of a model, and {} {} is "
          "there already. For revision {} give another --models-dir, or "
          "remove that with `mlxcel rm {}`; without --revision it is used",
          repository.id(),
          directory,
          there ? "with revision " + quote(*there) : "without a known one",
          quote(asked),
          repository.id()
      )
  );
}

void note_revision(const std::string& directory, const std::string& revision) {
  os::make_directories(directory);
  AtomicFile file(join_path(directory, kRevisionFile));
  file.write(revision);
  file.commit();
}

void download_entry(Downloader& downloader, const DownloadRequest& request) {
  try {
    downloader.download(request);
  } catch (...) {
    remove_empty_entry(request.directory.string());
    throw;
  }
}

void remove_entry(const std::string& root, const StoreEntry& entry) {
  std::string owner = parent_path(entry.path);
  bool has_owner = entry.id.find('/') != std::string::npos;
  if (has_owner && is_link(owner)) {
    fail(
        ErrorCode::unsupported,
        fmt::format(
            "[store] {}: {} is a link; what lies behind it is not this "
            "store's ({})",
            entry.id,
            owner,
            root
        )
    );
  }
  if (DirectoryLock::is_held(entry.path)) {
    fail(
        ErrorCode::io,
        fmt::format(
            "[store] {}: another process downloads into {}",
            entry.id,
            entry.path
        )
    );
  }
  std::error_code error;
  // A link is removed itself, and none is followed.
  std::filesystem::remove_all(entry.path, error);
  if (error) {
    fail(
        ErrorCode::io,
        fmt::format(
            "[store] cannot remove all of {}: {}", entry.path, error.message()
        )
    );
  }
  if (has_owner) {
    os::remove_path(owner);
  }
}

}  // namespace mlxcel::hub
