#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/model_words.h"
#include "apps/options.h"
#include "apps/output.h"
#include "mlxcel/core/os.h"
#include "mlxcel/hub/places.h"
#include "mlxcel/hub/store.h"

namespace mlxcel::apps {

namespace {

constexpr int kStandardOutput = 1;
constexpr const char* kDim = "\033[2m";
constexpr const char* kPlain = "\033[0m";

struct ListOptions {
  std::string models_dir;
  std::string order = "name";
  bool json = false;
  bool quiet = false;
  bool verbose = false;
};

struct Row {
  std::string name;
  std::string size;
  std::string modified;
  std::string path;
};

bool styled() {
  const char* no_color = os::environment("NO_COLOR");
  return os::is_terminal(kStandardOutput) &&
         (no_color == nullptr || *no_color == '\0');
}

std::string dim(const std::string& text) {
  return styled() ? kDim + text + kPlain : text;
}

std::string padding(size_t width, const std::string& text) {
  return std::string(width - std::min(width, columns(text)), ' ');
}

std::string table(const std::vector<Row>& rows, bool verbose) {
  size_t name = 0;
  size_t size = 0;
  size_t modified = 0;
  for (const Row& row : rows) {
    name = std::max(name, columns(row.name));
    size = std::max(size, columns(row.size));
    modified = std::max(modified, columns(row.modified));
  }
  std::string out;
  for (const Row& row : rows) {
    bool header = &row == rows.data();
    out += "  " + row.name + padding(name, row.name) + "  " +
           padding(size, row.size) + row.size + "  " +
           (header ? row.modified : dim(row.modified));
    if (verbose) {
      out += padding(modified, row.modified) + "  " + row.path;
    }
    out += '\n';
  }
  return out;
}

std::string describe(
    const std::vector<hub::StoreEntry>& entries,
    const std::string& root,
    bool verbose
) {
  uint64_t total = 0;
  std::vector<Row> rows{{"NAME", "SIZE", "MODIFIED", "PATH"}};
  int64_t now = os::unix_time();
  for (const hub::StoreEntry& entry : entries) {
    total += entry.size;
    rows.push_back(
        {shortened(entry.id),
         size_words(entry.size),
         age_words(entry.modified, now),
         hub::contract_home(entry.path)}
    );
  }
  return fmt::format(
      "{} {} · {} · {}\n\n{}",
      entries.size(),
      entries.size() == 1 ? "model" : "models",
      size_words(total),
      dim(hub::contract_home(root)),
      table(rows, verbose)
  );
}

std::string describe_empty(const std::optional<std::string>& root) {
  std::string first =
      root ? fmt::format(
                 "No models are downloaded in {}.",
                 dim(hub::contract_home(*root))
             )
           : fmt::format(
                 "The model store has no place: {}.", hub::store_root_advice()
             );
  return first +
         "\n`mlxcel download OWNER/NAME` downloads one.\n"
         "`mlxcel arch` lists the architectures that can be opened.\n";
}

std::string json_text(const std::vector<hub::StoreEntry>& entries) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const hub::StoreEntry& entry : entries) {
    nlohmann::ordered_json one;
    one["repo_id"] = entry.id;
    one["size_bytes"] = entry.size;
    one["path"] = entry.path;
    one["modified"] = nullptr;
    if (entry.modified) {
      one["modified"] = *entry.modified;
    }
    all.push_back(std::move(one));
  }
  using Dump = nlohmann::json::error_handler_t;
  return all.dump(2, ' ', false, Dump::replace) + "\n";
}

hub::StoreOrder order_of(const std::string& word) {
  return word == "size"       ? hub::StoreOrder::size
         : word == "modified" ? hub::StoreOrder::modified
                              : hub::StoreOrder::name;
}

void run(const ListOptions& options) {
  std::optional<std::string> root = hub::store_root(options.models_dir);
  std::vector<hub::StoreEntry> entries;
  if (root) {
    entries = hub::list_store(*root);
    hub::sort_entries(entries, order_of(options.order));
  }
  if (options.json) {
    write_output(json_text(entries));
  } else if (options.quiet) {
    std::string ids;
    for (const hub::StoreEntry& entry : entries) {
      ids += entry.id + "\n";
    }
    write_output(ids);
  } else if (entries.empty()) {
    write_output(describe_empty(root));
  } else {
    write_output(describe(entries, *root, options.verbose));
  }
}

}  // namespace

void add_list(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("list", "List the models in the model store");
  command->alias("ls");
  command->footer(
      "Examples:\n"
      "  mlxcel list\n"
      "  mlxcel list --sort size --verbose\n"
      "  mlxcel list --quiet | xargs -n 1 mlxcel rm --yes"
  );
  auto options = std::make_shared<ListOptions>();
  add_models_dir(*command, options->models_dir);
  auto* json = command->add_flag("--json", options->json, "A JSON list");
  command->add_flag("-q,--quiet", options->quiet, "The names alone, one a line")
      ->excludes(json);
  command->add_flag("-v,--verbose", options->verbose, "With paths")
      ->excludes(json);
  command
      ->add_option(
          "--sort",
          options->order,
          "name, size (largest first) or modified (newest first)"
      )
      ->check(CLI::IsMember({"name", "size", "modified"}));
  command->callback([options] { run(*options); });
}

}  // namespace mlxcel::apps
