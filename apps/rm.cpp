#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cctype>

#include "apps/command.h"
#include "apps/model_words.h"
#include "apps/options.h"
#include "apps/output.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/os.h"
#include "mlxcel/hub/huggingface_cache.h"
#include "mlxcel/hub/store.h"

namespace mlxcel::apps {

namespace {

constexpr int kStandardInput = 0;
constexpr size_t kAnswerLimit = 4096;

struct RemoveOptions {
  std::string repository;
  std::string models_dir;
  std::string revision;
  bool yes = false;
};

[[noreturn]] void fail_missing(
    const RemoveOptions& options,
    const hub::Reference& reference,
    const std::string& root
) {
  std::string id = reference.repository.id();
  auto cache = hub::huggingface_cache();
  auto snapshot = cache
                      ? hub::find_snapshot(
                            *cache,
                            reference.repository,
                            options.revision.empty() ? "main" : options.revision
                        )
                      : std::nullopt;
  if (snapshot) {
    fail(
        ErrorCode::not_found,
        fmt::format(
            "[store] {}: not in the model store ({}), only in the Hugging Face "
            "cache, from which nothing is ever deleted: {}",
            id,
            root,
            *snapshot
        )
    );
  }
  fail(
      ErrorCode::not_found,
      fmt::format(
          "[store] {}: not in the model store ({}); `mlxcel list` shows what "
          "is",
          id,
          root
      )
  );
}

// A line of standard input, in lower case, without spaces around it.
std::string read_answer() {
  std::string line;
  char c = 0;
  while (line.size() < kAnswerLimit) {
    auto got = os::read_some(kStandardInput, &c, 1, "standard input");
    if (!got) {
      continue;
    }
    if (*got == 0 || c == '\n') {
      break;
    }
    line += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  size_t first = line.find_first_not_of(" \t\r");
  size_t last = line.find_last_not_of(" \t\r");
  return first == std::string::npos ? "" : line.substr(first, last + 1 - first);
}

bool confirmed(const std::string& what) {
  if (!os::is_terminal(kStandardInput)) {
    fail(
        ErrorCode::invalid_input,
        fmt::format(
            "[rm] {}: standard input is no terminal to ask on; --yes removes "
            "without asking",
            what
        )
    );
  }
  fmt::print(stderr, "Remove {}? [y/N] ", what);
  std::fflush(stderr);
  std::string answer = read_answer();
  return answer == "y" || answer == "yes";
}

void run(const RemoveOptions& options) {
  hub::Reference reference = hub::parse_repository(options.repository);
  if (!options.revision.empty()) {
    hub::check_revision(options.revision);
  }
  std::string root = hub::require_store_root(options.models_dir);
  auto entry = hub::find_entry(root, reference);
  if (!entry) {
    fail_missing(options, reference, root);
  }
  std::string what = fmt::format(
      "{} ({}, {})", entry->id, size_words(entry->size), entry->path
  );
  if (!options.yes && !confirmed(what)) {
    write_output("Nothing was removed.\n");
    return;
  }
  hub::remove_entry(root, *entry);
  write_output(fmt::format("Removed {}\n", what));
}

}  // namespace

void add_rm(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("rm", "Remove a model from the model store");
  command->footer(
      "Examples:\n"
      "  mlxcel rm mlx-community/Qwen3-0.6B-4bit\n"
      "  mlxcel rm Qwen3-0.6B-4bit --yes\n"
      "It asks first. Nothing outside of the store is removed, in particular "
      "nothing\nof the Hugging Face cache."
  );
  auto options = std::make_shared<RemoveOptions>();
  command
      ->add_option(
          "repository",
          options->repository,
          "OWNER/NAME, or NAME of the default organisation"
      )
      ->required()
      ->type_name("REPO_ID");
  add_models_dir(*command, options->models_dir);
  command
      ->add_option(
          "--revision",
          options->revision,
          "Revision to look for in the Hugging Face cache if the store hasn't "
          "the model"
      )
      ->type_name("REV");
  command->add_flag("-y,--yes", options->yes, "Don't ask");
  command->callback([options] { run(*options); });
}

}  // namespace mlxcel::apps
