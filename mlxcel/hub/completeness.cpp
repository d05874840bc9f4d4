#include "mlxcel/hub/completeness.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/text.h"

namespace mlxcel::hub {

namespace {

constexpr const char* kConfig = "config.json";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr std::string_view kExtension = ".safetensors";
constexpr uint64_t kIndexLimit = uint64_t{256} << 20;
constexpr size_t kIndexDepth = 64;
constexpr size_t kListed = 20;
constexpr int64_t kMaxParts = 99999;

using Names = std::set<std::string>;

bool has_bytes(const std::string& path) {
  os::FileInfo info;
  return os::stat_path(path, info) && info.regular && info.size > 0;
}

// The shards that are there; consolidated*.safetensors repeat the others.
Names list_shards(const std::string& directory) {
  Names shards;
  Names consolidated;
  for (std::string& name : os::list_directory(directory)) {
    if (name.ends_with(kExtension) && name.front() != '.' &&
        has_bytes(join_path(directory, name))) {
      bool repeats = name.starts_with("consolidated");
      (repeats ? consolidated : shards).insert(std::move(name));
    }
  }
  return shards.empty() ? consolidated : shards;
}

// The shards that the index names; nothing without a readable index.
std::optional<Names> read_index(const std::string& directory) {
  std::string path = join_path(directory, kIndex);
  if (!has_bytes(path)) {
    return std::nullopt;
  }
  std::string text;
  try {
    text = read_file(path, kIndexLimit);
  } catch (const Error&) {
    return std::nullopt;
  }
  simdjson::dom::parser parser;
  simdjson::dom::object map;
  if (parser.allocate(std::max<size_t>(text.size(), 64), kIndexDepth) ||
      parser.parse(text)["weight_map"].get(map)) {
    return std::nullopt;
  }
  Names shards;
  for (auto field : map) {
    std::string_view shard;
    if (field.value.get(shard)) {
      return std::nullopt;
    }
    shards.emplace(shard);
  }
  return shards.empty() ? std::nullopt : std::optional(std::move(shards));
}

// All names of the set that NAME-00001-of-00003.safetensors belongs to; none
// if the name is no such name.
Names numbered_set(std::string_view name) {
  constexpr std::string_view kOf = "-of-";
  constexpr size_t kDigits = 5;
  constexpr size_t kTail = 1 + kDigits + kOf.size() + kDigits;
  std::string_view stem = name.substr(0, name.size() - kExtension.size());
  if (stem.size() <= kTail) {
    return {};
  }
  std::string_view tail = stem.substr(stem.size() - kTail);
  auto count = parse_int(tail.substr(kTail - kDigits));
  if (tail[0] != '-' || tail.substr(1 + kDigits, kOf.size()) != kOf ||
      !parse_int(tail.substr(1, kDigits)) || !count || *count < 1 ||
      *count > kMaxParts) {
    return {};
  }
  Names names;
  for (int64_t i = 1; i <= *count; ++i) {
    names.insert(fmt::format(
        "{}-{:05}-of-{:05}{}",
        stem.substr(0, stem.size() - kTail),
        i,
        *count,
        kExtension
    ));
  }
  return names;
}

Names expected_shards(const std::optional<Names>& index, const Names& present) {
  if (index) {
    bool stale = std::any_of(
        present.begin(),
        present.end(),
        [&](const std::string& name) { return !index->contains(name); }
    );
    return stale ? present : *index;
  }
  Names expected;
  for (const std::string& name : present) {
    if (!expected.contains(name)) {
      expected.merge(numbered_set(name));
    }
  }
  return expected;
}

}  // namespace

std::string Completeness::describe() const {
  auto list = [](const std::vector<std::string>& names) {
    return names.empty() ? "nothing" : list_names(names, kListed);
  };
  return fmt::format("missing: {}; present: {}", list(missing), list(present));
}

Completeness check_completeness(const std::string& directory) {
  Completeness found;
  bool config = file_exists(join_path(directory, kConfig));
  (config ? found.present : found.missing).push_back(kConfig);
  Names present = list_shards(directory);
  std::optional<Names> index = read_index(directory);
  for (const std::string& name : expected_shards(index, present)) {
    if (!present.contains(name)) {
      found.missing.push_back(quote(name));
    }
  }
  if (!index && present.empty()) {
    found.missing.push_back("*.safetensors");
  }
  for (const std::string& name : present) {
    found.present.push_back(quote(name));
  }
  return found;
}

}  // namespace mlxcel::hub
