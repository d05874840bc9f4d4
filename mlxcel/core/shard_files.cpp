#include "mlxcel/core/shard_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/os.h"

namespace mlxcel {

namespace {

constexpr int64_t kMaxParts = 99999;
constexpr size_t kMostMissing = 100'000;

using Names = std::vector<std::string>;

bool is_consolidated(std::string_view name) {
  return name.starts_with("consolidated");
}

// Of PEFT and of mlx-lm, which numbers those that it saves on the way.
bool is_adapter(std::string_view name) {
  return name.starts_with("adapter_model") || name == "adapters.safetensors" ||
         name.ends_with("_adapters.safetensors");
}

bool contains(const Names& sorted, const std::string& name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

// STEM-00001-of-00003.safetensors: the third of three, or no such name.
struct Numbered {
  std::string stem;
  int64_t part = 0;
  int64_t count = 0;  // 0: no such name

  explicit Numbered(std::string_view name) {
    constexpr std::string_view kOf = "-of-";
    constexpr size_t kDigits = 5;
    constexpr size_t kTail = 1 + kDigits + kOf.size() + kDigits;
    name.remove_suffix(kShardExtension.size());
    if (name.size() <= kTail) {
      return;
    }
    std::string_view tail = name.substr(name.size() - kTail);
    auto number = parse_int(tail.substr(1, kDigits));
    auto total = parse_int(tail.substr(kTail - kDigits));
    if (tail[0] == '-' && tail.substr(1 + kDigits, kOf.size()) == kOf &&
        number && total && *total >= 1 && *total <= kMaxParts) {
      stem = name.substr(0, name.size() - kTail);
      part = *number;
      count = *total;
    }
  }
};

// The companions of numbered files that aren't there.
void add_missing_parts(const Names& present, Names& missing) {
  std::map<std::pair<std::string, int64_t>, std::vector<int64_t>> sets;
  for (const std::string& name : present) {
    Numbered numbered(name);
    if (numbered.count > 0) {
      sets[{numbered.stem, numbered.count}].push_back(numbered.part);
    }
  }
  for (auto& [set, parts] : sets) {
    std::sort(parts.begin(), parts.end());
    for (int64_t part = 1; part <= set.second; ++part) {
      if (missing.size() >= kMostMissing) {
        return;
      }
      if (!std::binary_search(parts.begin(), parts.end(), part)) {
        missing.push_back(fmt::format(
            "{}-{:05}-of-{:05}{}", set.first, part, set.second, kShardExtension
        ));
      }
    }
  }
}

bool is_unfinished(std::string_view name) {
  for (std::string_view ending :
       {".part", ".incomplete", ".crdownload", ".aria2", ".tmp"}) {
    if (name.ends_with(ending)) {
      return true;
    }
  }
  return name.find(".tmp-") != std::string_view::npos;
}

}  // namespace

bool is_plain_file_name(std::string_view name) {
  constexpr std::string_view kForbidden("/\\\0", 3);
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(kForbidden) == std::string_view::npos;
}

ShardState shard_state(const std::string& path) {
  os::FileInfo info;
  if (os::stat_path(path, info)) {
    return !info.regular    ? ShardState::not_a_file
           : info.size == 0 ? ShardState::empty
                            : ShardState::whole;
  }
  return os::stat_path(path, info, false) ? ShardState::broken_link
                                          : ShardState::absent;
}

ShardFiles find_shard_files(const std::string& directory) {
  ShardFiles files;
  Names consolidated;
  files.all = os::list_directory(directory);
  for (const std::string& name : files.all) {
    if (!name.ends_with(kShardExtension) || name.front() == '.') {
      continue;
    }
    if (is_adapter(name)) {
      files.adapters.push_back(name);
      continue;
    }
    switch (shard_state(join_path(directory, name))) {
      case ShardState::whole:
        (is_consolidated(name) ? consolidated : files.whole).push_back(name);
        break;
      case ShardState::empty:
        files.empty.push_back(name);
        break;
      case ShardState::broken_link:
        files.broken.push_back(name);
        break;
      case ShardState::absent:
      case ShardState::not_a_file:
        break;
    }
  }
  if (files.whole.empty() && files.empty.empty()) {
    files.whole = std::move(consolidated);
  }
  return files;
}

ShardPlan plan_shards(
    const std::string& directory, const ShardFiles& files, const Names& indexed
) {
  ShardPlan plan;
  for (const std::string& name : indexed) {
    bool whole = contains(files.all, name) && is_plain_file_name(name) &&
                 shard_state(join_path(directory, name)) == ShardState::whole;
    (whole ? plan.present : plan.missing).push_back(name);
  }
  plan.stale = !plan.missing.empty() && std::any_of(
                                            files.whole.begin(),
                                            files.whole.end(),
                                            [&](const std::string& name) {
                                              return !contains(indexed, name);
                                            }
                                        );
  if (indexed.empty() || plan.stale) {
    plan.present = files.whole;
    plan.missing = files.empty;
    Names numbered = files.whole;
    numbered.insert(numbered.end(), files.empty.begin(), files.empty.end());
    add_missing_parts(numbered, plan.missing);
    std::sort(plan.missing.begin(), plan.missing.end());
  }
  return plan;
}

std::vector<std::string> unfinished_downloads(const std::string& directory) {
  Names found;
  for (const char* folder :
       {"", ".cache/huggingface/download", "../../blobs"}) {
    bool snapshot = std::string_view(folder).starts_with("..");
    if (snapshot && base_name(parent_path(directory)) != "snapshots") {
      continue;
    }
    std::string path = join_path(directory, folder);
    if (!directory_exists(path)) {
      continue;
    }
    for (const std::string& name : os::list_directory(path)) {
      if (is_unfinished(name)) {
        found.push_back(*folder == '\0' ? name : join_path(folder, name));
      }
    }
  }
  return found;
}

}  // namespace mlxcel
