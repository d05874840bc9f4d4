#include "mlxcel/hub/resolve.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/os.h"
#include "mlxcel/hub/completeness.h"
#include "mlxcel/hub/huggingface_cache.h"
#include "mlxcel/hub/links.h"
#include "mlxcel/hub/store.h"

namespace mlxcel::hub {

namespace {

constexpr const char* kMainRevision = "main";
constexpr const char* kLocalModels = "./models";

/// One repository on its way to a directory.
class Search {
 public:
  Search(
      const ResolveRequest& request, Reference reference, Downloader* downloader
  )
      : request_(request),
        reference_(std::move(reference)),
        downloader_(downloader),
        offline_(request.offline || offline_environment()) {}

  Resolution run() {
    if (reference_.expanded) {
      announce(fmt::format(
          "{} means {} (MLXCEL_DEFAULT_ORG)", request_.reference, id()
      ));
    }
    miss(request_.reference);
    for (auto look :
         {&Search::in_local_models,
          &Search::in_huggingface_cache,
          &Search::in_store}) {
      if (auto found = (this->*look)()) {
        return *found;
      }
    }
    return fetched();
  }

 private:
  std::string id() const {
    return reference_.repository.id();
  }
  bool any_revision() const {
    return request_.revision.empty();
  }
  void announce(const std::string& text) const {
    if (request_.announce) {
      request_.announce(text);
    }
  }
  Resolution found(std::string directory, Source source) const {
    return {std::move(directory), source, id()};
  }
  /// Remembers for the error that a place hasn't the model, and why.
  std::optional<Resolution> miss(
      const std::string& place, const std::string& why = ""
  ) {
    places_ += places_.empty() ? "" : ", ";
    places_ += why.empty() ? place : fmt::format("{} ({})", place, why);
    return std::nullopt;
  }

  std::optional<Resolution> in_local_models() {
    if (!any_revision()) {
      return std::nullopt;
    }
    std::string directory = join_path(kLocalModels, reference_.repository.name);
    if (!directory_exists(directory)) {
      return miss(directory);
    }
    Completeness state = check_completeness(directory);
    if (!state.complete()) {
      return miss(directory, state.describe());
    }
    return found(directory, Source::local_models);
  }

  // A snapshot may hold the few files that another program asked for. It
  // can't be filled up here, so it then counts as absent.
  std::optional<Resolution> in_huggingface_cache() {
    auto cache = huggingface_cache();
    if (!cache) {
      return std::nullopt;
    }
    auto snapshot = find_snapshot(
        *cache,
        reference_.repository,
        any_revision() ? kMainRevision : request_.revision
    );
    if (!snapshot) {
      return miss(*cache);
    }
    Completeness state = check_completeness(*snapshot);
    if (!state.complete()) {
      return miss(*snapshot, state.describe());
    }
    return found(*snapshot, Source::huggingface_cache);
  }

  std::optional<Resolution> in_store() {
    root_ = require_store_root(request_.store);
    revision_to_fetch(
        reference_.repository,
        store_directory(root_, reference_.repository),
        request_.revision
    );
    auto entry = find_entry(root_, reference_);
    if (!entry || (!any_revision() && entry->id != id())) {
      return miss(root_);
    }
    Completeness state = check_completeness(entry->path);
    if (!state.complete()) {
      partial_ = entry->id == id();
      return miss(entry->path, state.describe());
    }
    return found(entry->path, Source::store);
  }

  Resolution fetched() {
    require_download();
    DownloadRequest wanted;
    wanted.repository = id();
    std::string directory = store_directory(root_, reference_.repository);
    wanted.directory = directory;
    wanted.revision =
        revision_to_fetch(reference_.repository, directory, request_.revision);
    if (!any_revision()) {
      note_revision(directory, request_.revision);
    }
    announce(
        partial_ ? fmt::format(
                       "{} in {} is incomplete; resuming its download",
                       id(),
                       directory
                   )
                 : fmt::format("Downloading {} into {}", id(), directory)
    );
    download_entry(*downloader_, wanted);
    Completeness state = check_completeness(directory);
    if (!state.complete() && partial_) {
      announce(fmt::format(
          "{} is still incomplete ({}); fetching all of it again",
          id(),
          state.describe()
      ));
      wanted.force = true;
      download_entry(*downloader_, wanted);
      state = check_completeness(directory);
    }
    if (!state.complete()) {
      fail(
          ErrorCode::not_found,
          fmt::format(
              "[model] {}: downloaded into {}, but not a whole checkpoint "
              "({}); its repository may hold no SafeTensors weights",
              id(),
              directory,
              state.describe()
          )
      );
    }
    return found(directory, Source::download);
  }

  void require_download() const {
    std::string searched = fmt::format(
        "[model] {}{}: not found on this machine. Searched: {}. ",
        id(),
        any_revision() ? "" : " revision " + quote(request_.revision),
        places_
    );
    if (offline_) {
      fail(
          ErrorCode::not_found,
          searched +
              "It is not downloaded in offline mode (--offline, "
              "MLXCEL_OFFLINE)"
      );
    }
    if (downloader_ == nullptr) {
      fail(
          ErrorCode::not_found,
          fmt::format(
              "{}This build can't download: get its files by other means and "
              "put them into {}, or give their directory",
              searched,
              store_directory(root_, reference_.repository)
          )
      );
    }
  }

  const ResolveRequest& request_;
  Reference reference_;
  Downloader* downloader_;
  bool offline_;
  bool partial_ = false;
  std::string root_;
  std::string places_;
};

Resolution locate(const ResolveRequest& request, Downloader* downloader) {
  if (!request.revision.empty()) {
    check_revision(request.revision);
  }
  Reference reference = parse_reference(request.reference);
  if (reference.kind == Reference::Kind::repository) {
    return Search(request, std::move(reference), downloader).run();
  }
  if (!request.revision.empty()) {
    fail(
        ErrorCode::usage,
        fmt::format(
            "[command line] --revision {}: {} is a path; revisions are those "
            "of a repository",
            quote(request.revision),
            request.reference
        )
    );
  }
  Resolution resolution;
  resolution.directory = directory_exists(reference.path)
                             ? reference.path
                             : parent_path(reference.path);
  return resolution;
}

}  // namespace

bool offline_environment() {
  for (const char* name : {"MLXCEL_OFFLINE", "LLAMA_ARG_OFFLINE"}) {
    const char* given = os::environment(name);
    std::string value = given == nullptr ? "" : given;
    if (value == "on" || value == "enabled" || value == "true" ||
        value == "1") {
      return true;
    }
  }
  return false;
}

Resolution resolve(const ResolveRequest& request, Downloader* downloader) {
  Resolution resolution = locate(request, downloader);
  check_links(resolution.directory);
  return resolution;
}

}  // namespace mlxcel::hub
