#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "mlxcel/loading/detect.h"
#include "mlxcel/loading/registry.h"
#include "mlxcel_version.h"

namespace mlxcel::apps {

namespace {

using Json = nlohmann::ordered_json;

// The order of the list; other groups follow by name.
constexpr std::string_view kGroups[] = {
    "Llama",        "Qwen",        "Gemma",       "Mistral",     "Phi",
    "DeepSeek",     "Cohere",      "InternLM",    "GLM",         "ERNIE",
    "Hunyuan",      "Granite",     "ExaOne",      "Solar",       "OLMo",
    "Nemotron",     "MoE (other)", "Mamba / SSM", "Hybrid",      "Falcon",
    "LFM2",         "PLaMo",       "RWKV",        "Specialized", "Llama VLM",
    "Qwen VLM",     "Gemma VLM",   "Mistral VLM", "Phi VLM",     "Cohere VLM",
    "Nemotron VLM", "Other VLM",
};

struct ArchOptions {
  bool json = false;
  bool markdown = false;
  bool built = false;
};

Json split(std::string_view list, char separator) {
  Json parts = Json::array();
  while (!list.empty()) {
    size_t end = list.find(separator);
    parts.push_back(std::string(list.substr(0, end)));
    list.remove_prefix(end == std::string_view::npos ? list.size() : end + 1);
  }
  return parts;
}

std::string_view output_of(const Descriptor& row) {
  if (row.category == Category::speech_to_speech) {
    return "audio";
  }
  switch (kind_of(row.category)) {
    case ModelKind::embedding:
      return "embeddings";
    case ModelKind::reranker:
      return "scores";
    case ModelKind::text_to_speech:
      return "audio";
    case ModelKind::object_detection:
      return "boxes";
    default:
      return "tokens";
  }
}

std::string_view status_of(const Descriptor& row) {
  return row.status == Status::built ? "built" : "recognised";
}

// No family was run on a GPU yet; those that are built reach Metal by way of
// the graph backend.
Json backends(const Descriptor& row) {
  Json all;
  all["metal"] = row.status == Status::built ? "partial" : "unsupported";
  all["cuda"] = "unsupported";
  all["rocm"] = "unsupported";
  return all;
}

Json types_of(const Descriptor& row) {
  Json types = split(row.model_types, ' ');
  for (const Json& type : split(row.shared_types, ' ')) {
    types.push_back(type);
  }
  return types;
}

Json describe(const Descriptor& row) {
  Capabilities can = capabilities(row.type);
  Json family;
  family["id"] = row.id;
  family["display_name"] = row.display_name;
  family["category"] = category_name(row.category);
  family["model_types"] = types_of(row);
  family["aliases"] = split(row.aliases, ',');
  family["runtimes"] = split(row.runtimes, ' ');
  family["modalities_in"] = split(row.modalities_in, ' ');
  family["output"] = output_of(row);
  family["backends"] = backends(row);
  family["tensor_parallel"] = can.tensor_parallel;
  family["pipeline_parallel"] = can.pipeline_parallel;
  family["drafters"] = Json::array();
  if (can.mtp) {
    family["drafters"].push_back("mtp");
  }
  if (can.dflash) {
    family["drafters"].push_back("dflash");
  }
  family["kv_modes"] =
      can.quantized_kv ? Json{"fp16", "int8", "turbo4"} : Json::array({"fp16"});
  family["group"] = row.group;
  family["architectures"] = split(row.classes, ' ');
  family["directory_route"] = directory_route_name(row.directory_route);
  family["weight_route"] = weight_route_name(row.weight_route);
  family["status"] = status_of(row);
  return family;
}

std::vector<const Descriptor*> chosen(const ArchOptions& options) {
  std::vector<const Descriptor*> rows;
  for (const Descriptor& row : registry()) {
    if (!options.built || row.status == Status::built) {
      rows.push_back(&row);
    }
  }
  return rows;
}

void print_json(const std::vector<const Descriptor*>& rows) {
  Json all;
  all["mlxcel_version"] = MLXCEL_VERSION;
  all["families"] = Json::array();
  for (const Descriptor* row : rows) {
    all["families"].push_back(describe(*row));
  }
  fmt::print("{}\n", all.dump(2));
}

std::vector<std::string_view> groups_of(
    const std::vector<const Descriptor*>& rows
) {
  std::vector<std::string_view> groups;
  for (const Descriptor* row : rows) {
    if (std::find(groups.begin(), groups.end(), row->group) == groups.end()) {
      groups.push_back(row->group);
    }
  }
  auto key = [](std::string_view group) {
    auto at = std::find(std::begin(kGroups), std::end(kGroups), group);
    return std::pair(
        at - std::begin(kGroups),
        at == std::end(kGroups) ? group : std::string_view()
    );
  };
  std::sort(groups.begin(), groups.end(), [&](auto a, auto b) {
    return key(a) < key(b);
  });
  return groups;
}

void print_text(const std::vector<const Descriptor*>& rows) {
  size_t built = static_cast<size_t>(std::count_if(
      rows.begin(),
      rows.end(),
      [](const Descriptor* row) { return row->status == Status::built; }
  ));
  fmt::print("Architectures ({}), {} built\n", rows.size(), built);
  for (std::string_view group : groups_of(rows)) {
    fmt::print("\n{}:\n", group);
    for (const Descriptor* row : rows) {
      if (row->group == group) {
        fmt::print(
            "  - {}{}\n",
            row->display_name,
            row->status == Status::built ? "" : " [recognised]"
        );
      }
    }
  }
}

// "a, b" of a list in words.
std::string commas(const Json& words, std::string_view mark) {
  std::string text;
  for (const Json& word : words) {
    text += fmt::format(
        "{}{}{}{}",
        text.empty() ? "" : ", ",
        mark,
        word.get_ref<const std::string&>(),
        mark
    );
  }
  return text;
}

void print_markdown(const std::vector<const Descriptor*>& rows) {
  fmt::print(
      "# Architectures\n\nWhat `mlxcel` knows by name: {} architectures. "
      "Printed by `mlxcel arch --markdown`\nfrom the registry "
      "(`mlxcel/loading/registry/`). *Built* ones run; *recognised* ones are "
      "told\napart and named, and refused with their name when they are "
      "loaded. A `model_type`\nthat several rows share is decided by fields, "
      "classes, files or weights.\n",
      rows.size()
  );
  for (std::string_view group : groups_of(rows)) {
    fmt::print(
        "\n## {}\n\n| Name | `model_type` | Input | For | Routes | Adapters | "
        "Status |\n|---|---|---|---|---|---|---|\n",
        group
    );
    for (const Descriptor* row : rows) {
      if (row->group == group) {
        fmt::print(
            "| {} | {} | {} | {} | {}, {} | {} | {} |\n",
            row->display_name,
            commas(types_of(*row), "`"),
            commas(split(row->modalities_in, ' '), ""),
            commas(split(row->runtimes, ' '), ""),
            directory_route_name(row->directory_route),
            weight_route_name(row->weight_route),
            row->adapters == Adapters::accepted ? "yes" : "no",
            status_of(*row)
        );
      }
    }
  }
}

}  // namespace

void add_arch(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "arch", "List the architectures that are supported or recognised"
  );
  command->alias("supported");
  command->footer("Example:\n  mlxcel arch --json");
  auto options = std::make_shared<ArchOptions>();
  auto* json = command->add_flag(
      "--json", options->json, "The registry as one JSON object"
  );
  command
      ->add_flag("--markdown", options->markdown, "The registry as a document")
      ->excludes(json);
  command->add_flag("--built", options->built, "Only what this build can run");
  command->callback([options] {
    std::vector<const Descriptor*> rows = chosen(*options);
    if (options->json) {
      print_json(rows);
    } else if (options->markdown) {
      print_markdown(rows);
    } else {
      print_text(rows);
    }
  });
}

}  // namespace mlxcel::apps
