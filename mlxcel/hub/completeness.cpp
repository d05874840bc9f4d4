#include "mlxcel/hub/completeness.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <string_view>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/shard_files.h"
#include "mlxcel/core/text.h"

namespace mlxcel::hub {

namespace {

constexpr const char* kConfig = "config.json";
constexpr uint64_t kIndexLimit = uint64_t{256} << 20;
constexpr size_t kIndexDepth = 64;
constexpr size_t kListed = 20;

using Names = std::vector<std::string>;

// The shards that the index names, sorted; none without a readable index.
Names read_index(const std::string& directory) {
  std::string text;
  try {
    text = read_file(join_path(directory, kShardIndex), kIndexLimit);
  } catch (const Error&) {
    return {};
  }
  simdjson::dom::parser parser;
  simdjson::dom::object map;
  if (parser.allocate(std::max<size_t>(text.size(), 64), kIndexDepth) ||
      parser.parse(text)["weight_map"].get(map)) {
    return {};
  }
  Names shards;
  for (auto field : map) {
    std::string_view shard;
    if (field.value.get(shard)) {
      return {};
    }
    if (shards.empty() || shards.back() != shard) {
      shards.emplace_back(shard);
    }
  }
  std::sort(shards.begin(), shards.end());
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  return shards;
}

}  // namespace

std::string Completeness::describe() const {
  auto list = [](const std::vector<std::string>& names) {
    return names.empty() ? "nothing" : list_names(names, kListed);
  };
  return fmt::format(
      "missing: {}; present: {}{}",
      list(missing),
      list(present),
      unfinished.empty() ? "" : "; unfinished: " + list(unfinished)
  );
}

Completeness check_completeness(const std::string& directory) {
  Completeness found;
  bool config = file_exists(join_path(directory, kConfig));
  (config ? found.present : found.missing).push_back(kConfig);
  ShardPlan plan = plan_shards(
      directory, find_shard_files(directory), read_index(directory)
  );
  for (const std::string& name : plan.missing) {
    found.missing.push_back(quote(name));
  }
  if (plan.missing.empty() && plan.present.empty()) {
    found.missing.push_back("*.safetensors");
  }
  for (const std::string& name : plan.present) {
    found.present.push_back(quote(name));
  }
  found.unfinished = unfinished_downloads(directory);
  return found;
}

}  // namespace mlxcel::hub
