#include "mlxcel/weights/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>

#include "mlxcel/core/containment.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/log.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/shard_files.h"
#include "mlxcel/core/text.h"
#include "mlxcel/core/thread_pool.h"
#include "mlxcel/weights/safetensors.h"
#include "mlxcel/weights/shard_index.h"

namespace mlxcel {

namespace {

constexpr size_t kListed = 100;

/// What to read, and by which index if it is followed.
struct Selection {
  ShardPlan plan;
  std::unique_ptr<ShardIndex> index;
  std::optional<ShardFiles> nothing;  // what there is instead of shards
};

[[noreturn]] void reject(const std::string& path, const std::string& why) {
  fail(ErrorCode::invalid_input, fmt::format("[shards] {}: {}", path, why));
}

std::string link_target(const std::string& path) {
  std::error_code error;
  return std::filesystem::read_symlink(path, error).string();
}

// What is known of files that aren't there as they should be.
std::vector<std::string> describe_missing(
    const std::string& directory, const ShardPlan& plan
) {
  std::vector<std::string> lines;
  for (const std::string& name : plan.missing) {
    if (lines.size() == kListed) {
      lines.resize(plan.missing.size());
      break;
    }
    std::string path = join_path(directory, name);
    switch (shard_state(path)) {
      case ShardState::empty:
        lines.push_back(quote(name) + " (empty)");
        break;
      case ShardState::broken_link:
        lines.push_back(fmt::format(
            "{} (a link to {})", quote(name), quote(link_target(path))
        ));
        break;
      case ShardState::not_a_file:
        reject(path, "not a regular file");
      default:
        lines.push_back(quote(name));
    }
  }
  return lines;
}

[[noreturn]] void reject_incomplete(
    const std::string& directory, const ShardPlan& plan
) {
  std::vector<std::string> unfinished = unfinished_downloads(directory);
  fail(
      ErrorCode::not_found,
      fmt::format(
          "[shards] {}: an incomplete download. Missing: {}; present: {}{}. "
          "Download the model again",
          directory,
          list_names(describe_missing(directory, plan), kListed),
          plan.present.empty() ? "nothing" : list_names(plan.present, kListed),
          unfinished.empty()
              ? ""
              : "; unfinished: " + list_names(unfinished, kListed)
      )
  );
}

[[noreturn]] void reject_empty(
    const std::string& directory, const ShardFiles& files
) {
  if (!files.broken.empty()) {
    fail(
        ErrorCode::not_found,
        fmt::format(
            "[shards] {}: all {} {} files are broken links. Download the model "
            "again into a real local directory",
            directory,
            files.broken.size(),
            kShardExtension
        )
    );
  }
  std::vector<std::string> unfinished = unfinished_downloads(directory);
  std::string instead;
  if (!unfinished.empty()) {
    instead = ", but unfinished downloads: " + list_names(unfinished, kListed);
  } else if (!files.adapters.empty()) {
    instead = ", but an adapter, which needs its base model: " +
              list_names(files.adapters, kListed);
  }
  fail(
      ErrorCode::not_found,
      fmt::format(
          "[shards] {}: no {} file{}", directory, kShardExtension, instead
      )
  );
}

void warn_of_broken_links(
    const std::string& directory, const ShardFiles& files
) {
  for (const std::string& name : files.broken) {
    std::string path = join_path(directory, name);
    log_warning(fmt::format(
        "[shards] {} is a link to {}, which is missing; skipped. Download the "
        "model again into a real local directory",
        path,
        quote(link_target(path))
    ));
  }
}

// By the index if there is one and it is followed; what is missing is left to
// the caller. `tell`: whether to warn of what is not followed.
Selection plan_selection(const std::string& directory, bool tell) {
  Selection selection;
  selection.index = read_shard_index(directory);
  ShardFiles files = find_shard_files(directory);
  selection.plan = plan_shards(
      directory,
      files,
      selection.index ? selection.index->shards : std::vector<std::string>{}
  );
  if (selection.plan.stale) {
    selection.index.reset();
    if (tell) {
      log_warning(fmt::format(
          "[shards] {}: the index names files that do not match what is on "
          "disk, likely a repackaged quantisation; every {} file is loaded "
          "instead",
          directory,
          kShardExtension
      ));
    }
  }
  if (!selection.index) {
    if (tell) {
      warn_of_broken_links(directory, files);
    }
    if (selection.plan.present.empty() && selection.plan.missing.empty()) {
      selection.nothing = std::move(files);
    }
  }
  return selection;
}

void refuse_escapes(
    const std::string& directory, const std::vector<std::string>& names
) {
  for (const std::string& name : names) {
    std::string path = join_path(directory, name);
    os::FileInfo info;
    if (os::stat_path(path, info, false) && info.symlink &&
        !stays_inside(directory, path)) {
      reject(
          path,
          fmt::format(
              "a link to {}, outside of the model directory; copy the file "
              "there",
              quote(link_target(path))
          )
      );
    }
  }
}

Selection select_readable(const std::string& directory) {
  Selection selection = plan_selection(directory, true);
  if (selection.nothing) {
    reject_empty(directory, *selection.nothing);
  }
  if (!selection.plan.missing.empty()) {
    reject_incomplete(directory, selection.plan);
  }
  refuse_escapes(directory, selection.plan.present);
  return selection;
}

[[noreturn]] void reject_promise(
    const ShardIndex& index, const IndexedTensor& promised
) {
  reject(
      index.path,
      fmt::format(
          "weight_map.{}: {} does not hold this tensor",
          quote(promised.tensor),
          quote(promised.shard)
      )
  );
}

// Every tensor of the index must have come from some shard.
void check_promised_tensors(const ShardIndex& index, const WeightMap& weights) {
  for (const IndexedTensor& promised : index.tensors) {
    if (!weights.contains(promised.tensor)) {
      reject_promise(index, promised);
    }
  }
}

std::vector<TensorEntry> read_header(const std::string& path) {
  auto file = MappedFile::open(path);
  auto entries = read_safetensors_header(file->bytes(), path);
  if (file->faulted()) {
    fail(ErrorCode::io, fmt::format("[safetensors] {}: cannot be read", path));
  }
  return entries;
}

// Calls visit(entry) until it gives false.
template <typename F>
void for_each_entry(
    const std::string& directory, const std::vector<std::string>& names, F visit
) {
  refuse_escapes(directory, names);
  for (const std::string& name : names) {
    for (TensorEntry& entry : read_header(join_path(directory, name))) {
      if (!visit(entry)) {
        return;
      }
    }
  }
}

// The headers of the files, read on all threads.
std::vector<std::vector<TensorEntry>> read_headers(
    const std::vector<std::string>& paths
) {
  std::vector<std::vector<TensorEntry>> headers(paths.size());
  std::vector<std::exception_ptr> faults(paths.size());
  auto read = [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end);
         ++i) {
      try {
        headers[i] = read_header(paths[i]);
      } catch (...) {
        faults[i] = std::current_exception();
      }
    }
  };
  auto count = static_cast<int64_t>(paths.size());
  if (count == 1) {
    read(0, 1);
  } else {
    ThreadPool::instance().parallel_for(count, 1, read);
  }
  for (const std::exception_ptr& fault : faults) {
    if (fault) {
      std::rethrow_exception(fault);
    }
  }
  return headers;
}

std::optional<uint64_t> header_bytes(const std::string& path) {
  try {
    uint64_t bytes = 0;
    for (const TensorEntry& entry : read_header(path)) {
      bytes += entry.end - entry.begin;
    }
    return bytes;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<std::string> list_shards(const std::string& directory) {
  std::vector<std::string> paths;
  for (const std::string& name : select_readable(directory).plan.present) {
    paths.push_back(join_path(directory, name));
  }
  return paths;
}

std::optional<std::vector<std::string>> tensor_names(
    const std::string& directory
) {
  Selection selection = plan_selection(directory, false);
  std::vector<std::string> names;
  if (selection.index) {
    names.reserve(selection.index->tensors.size());
    for (const IndexedTensor& tensor : selection.index->tensors) {
      names.emplace_back(tensor.tensor);
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  if (!selection.plan.missing.empty()) {
    reject_incomplete(directory, selection.plan);
  }
  if (selection.plan.present.empty()) {
    return std::nullopt;
  }
  for_each_entry(directory, selection.plan.present, [&](TensorEntry& entry) {
    names.push_back(std::move(entry.name));
    return true;
  });
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::vector<int64_t>> tensor_shape(
    const std::string& directory, std::string_view name
) {
  std::optional<std::vector<int64_t>> shape;
  Selection selection = plan_selection(directory, false);
  for_each_entry(directory, selection.plan.present, [&](TensorEntry& entry) {
    if (entry.name == name) {
      shape = std::move(entry.shape);
    }
    return !shape;
  });
  return shape;
}

WeightMap load_weights(const std::string& directory) {
  Selection selection = select_readable(directory);
  WeightMap weights;
  weights.origin = directory;
  for (const std::string& name : selection.plan.present) {
    load_safetensors(join_path(directory, name), weights);
  }
  if (selection.index) {
    check_promised_tensors(*selection.index, weights);
  }
  return weights;
}

TensorListing list_tensors(const std::string& directory) {
  Selection selection = select_readable(directory);
  TensorListing listing;
  for (const std::string& name : selection.plan.present) {
    listing.shards.push_back(join_path(directory, name));
  }
  auto headers = read_headers(listing.shards);
  size_t total = 0;
  for (const auto& header : headers) {
    total += header.size();
  }
  listing.reserve(total);
  for (auto& header : headers) {
    for (TensorEntry& entry : header) {
      listing.add(std::move(entry));
    }
  }
  if (selection.index) {
    for (const IndexedTensor& promised : selection.index->tensors) {
      if (listing.find(promised.tensor) == TensorListing::kNone) {
        reject_promise(*selection.index, promised);
      }
    }
  }
  return listing;
}

uint64_t weight_bytes(const std::string& directory) {
  Selection selection;
  try {
    selection = select_readable(directory);
  } catch (const Error&) {
    return 0;
  }
  uint64_t total = 0;
  for (const std::string& name : selection.plan.present) {
    auto bytes = header_bytes(join_path(directory, name));
    auto sum = bytes ? checked_add(total, *bytes) : std::nullopt;
    if (!sum) {
      return selection.index ? selection.index->total_size : 0;
    }
    total = *sum;
  }
  return total;
}

}  // namespace mlxcel
