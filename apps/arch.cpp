#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "mlxcel/loading/registry.h"
#include "mlxcel_version.h"

namespace mlxcel::apps {

namespace {

using Json = nlohmann::ordered_json;

Json split(std::string_view list, char separator) {
  Json parts = Json::array();
  while (!list.empty()) {
    size_t end = list.find(separator);
    parts.push_back(std::string(list.substr(0, end)));
    list.remove_prefix(end == std::string_view::npos ? list.size() : end + 1);
  }
  return parts;
}

std::string output_of(Category category) {
  switch (category) {
    case Category::embedding:
      return "embeddings";
    case Category::reranker:
      return "scores";
    case Category::tts:
    case Category::speech_to_speech:
      return "audio";
    case Category::detection:
      return "boxes";
    default:
      return "tokens";
  }
}

Json describe(const Descriptor& entry) {
  Json family;
  family["id"] = entry.id;
  family["display_name"] = entry.display_name;
  family["category"] = category_name(entry.category);
  family["model_types"] = split(entry.model_types, ' ');
  family["aliases"] = split(entry.aliases, ',');
  family["runtimes"] = split(entry.runtimes, ' ');
  family["modalities_in"] = split(entry.modalities_in, ' ');
  family["output"] = output_of(entry.category);
  family["directory_route"] = directory_route_name(entry.directory_route);
  family["weight_route"] = weight_route_name(entry.weight_route);
  family["status"] = entry.status == Status::built ? "built" : "recognised";
  return family;
}

void print_json() {
  Json all;
  all["mlxcel_version"] = MLXCEL_VERSION;
  all["families"] = Json::array();
  for (const Descriptor& entry : registry()) {
    all["families"].push_back(describe(entry));
  }
  fmt::print("{}\n", all.dump(2));
}

// One block per group, groups in the order of their first entry.
void print_text() {
  fmt::print("Supported architectures ({})\n", registry().size());
  std::vector<std::string_view> groups;
  for (const Descriptor& entry : registry()) {
    if (std::find(groups.begin(), groups.end(), entry.group) == groups.end()) {
      groups.push_back(entry.group);
    }
  }
  for (std::string_view group : groups) {
    fmt::print("\n{}:\n", group);
    for (const Descriptor& entry : registry()) {
      if (entry.group == group) {
        fmt::print("  - {}\n", entry.display_name);
      }
    }
  }
}

}  // namespace

void add_arch(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("arch", "List the supported architectures");
  command->alias("supported");
  command->footer("Example:\n  mlxcel arch --json");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "The registry as one JSON object");
  command->callback([json] { *json ? print_json() : print_text(); });
}

}  // namespace mlxcel::apps
