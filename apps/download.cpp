#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/command.h"
#include "apps/downloader.h"
#include "apps/options.h"
#include "apps/output.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/hub/completeness.h"
#include "mlxcel/hub/huggingface_cache.h"
#include "mlxcel/hub/reference.h"
#include "mlxcel/hub/resolve.h"
#include "mlxcel/hub/store.h"

namespace mlxcel::apps {

namespace {

constexpr const char* kMain = "main";

struct DownloadOptions {
  std::string repository;
  std::string local_dir;
  std::string models_dir;
  std::string revision;
  std::string token;
  std::vector<std::string> include;
  bool force = false;
};

// A whole snapshot that another program has fetched, where that will do.
std::optional<std::string> cached_snapshot(
    const DownloadOptions& options, const hub::Repository& repository
) {
  auto cache = hub::huggingface_cache();
  if (!cache || !options.local_dir.empty() || !options.include.empty() ||
      options.force) {
    return std::nullopt;
  }
  auto snapshot = hub::find_snapshot(
      *cache, repository, options.revision.empty() ? kMain : options.revision
  );
  if (snapshot && !hub::check_completeness(*snapshot).complete()) {
    snapshot.reset();
  }
  return snapshot;
}

// The store's directory is claimed for the revision before anything is there.
void place_in_store(
    const DownloadOptions& options,
    const hub::Repository& repository,
    hub::DownloadRequest& request
) {
  std::string directory = hub::store_directory(
      hub::require_store_root(options.models_dir), repository
  );
  request.directory = directory;
  request.revision =
      hub::revision_to_fetch(repository, directory, options.revision);
  if (!options.revision.empty()) {
    hub::note_revision(directory, options.revision);
  }
}

void run(const DownloadOptions& options) {
  hub::Reference reference = hub::parse_repository(options.repository);
  std::string id = reference.repository.id();
  if (!options.revision.empty()) {
    hub::check_revision(options.revision);
  }
  if (reference.expanded) {
    fmt::print(stderr, "{}: taken as {}\n", options.repository, id);
  }
  if (auto snapshot = cached_snapshot(options, reference.repository)) {
    fmt::print(stderr, "{} is in the Hugging Face cache\n", id);
    write_output(*snapshot + "\n");
    return;
  }
  hub::DownloadRequest request;
  request.repository = id;
  request.include = options.include;
  request.force = options.force;
  auto downloader = make_downloader({options.token, true});
  if (downloader == nullptr) {
    fail(
        ErrorCode::unsupported,
        "[download] this build has no downloader (MLXCEL_DOWNLOAD=OFF)"
    );
  }
  if (hub::offline_environment()) {
    fail(
        ErrorCode::not_found,
        fmt::format("[download] {}: MLXCEL_OFFLINE forbids the network", id)
    );
  }
  if (options.local_dir.empty()) {
    place_in_store(options, reference.repository, request);
  } else {
    request.directory = options.local_dir;
    request.revision = options.revision.empty() ? kMain : options.revision;
  }
  if (options.local_dir.empty()) {
    hub::download_entry(*downloader, request);
  } else {
    downloader->download(request);
  }
  write_output(request.directory.string() + "\n");
}

}  // namespace

void add_download(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "download", "Fetch a model from the Hugging Face hub into the store"
  );
  command->footer(
      "Examples:\n"
      "  mlxcel download mlx-community/Qwen3-0.6B-4bit\n"
      "  mlxcel download Qwen3-0.6B-4bit --local-dir ./qwen3\n"
      "  mlxcel download OWNER/NAME --include '*.json' --include 'tokenizer*'\n"
      "A download that was cut off goes on where it ended. The last line "
      "printed is the\ndirectory. HF_ENDPOINT names another hub; HF_TOKEN "
      "holds "
      "a token, which unlike\n--token other users of the machine can't see."
  );
  auto options = std::make_shared<DownloadOptions>();
  auto add = [&](const char* name, auto& value, const char* help) {
    return command->add_option(name, value, help);
  };
  add("repository",
      options->repository,
      "OWNER/NAME, or NAME of the default organisation")
      ->required()
      ->type_name("REPO_ID");
  add("--local-dir", options->local_dir, "Put the files exactly there")
      ->type_name("PATH");
  add_models_dir(*command, options->models_dir);
  add("--revision",
      options->revision,
      "Branch, tag or commit of the repository; default: main")
      ->type_name("REV");
  add("--token,--hf-token",
      options->token,
      "For private and gated repositories (HF_TOKEN)")
      ->type_name("TOKEN");
  add("--include",
      options->include,
      "Fetch only files whose path matches (repeatable)")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  command->add_flag(
      "--force", options->force, "Fetch files that are there already"
  );
  command->callback([options] { run(*options); });
}

}  // namespace mlxcel::apps
