#include "mlxcel/weights/shards.h"

#include <fmt/format.h>
#include <simdjson.h>

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
#include "mlxcel/core/text.h"
#include "mlxcel/core/thread_pool.h"
#include "mlxcel/weights/safetensors.h"

namespace mlxcel {

namespace {

constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr std::string_view kExtension = ".safetensors";
constexpr std::string_view kConsolidated = "consolidated";
constexpr uint64_t kMaxIndex = uint64_t{256} << 20;
constexpr size_t kMaxIndexDepth = 64;
constexpr size_t kListed = 100;

struct IndexedTensor {
  std::string_view tensor;
  std::string_view shard;
};

/// model.safetensors.index.json; the views live in the parser.
struct Index {
  std::string path;
  simdjson::dom::parser parser;
  std::vector<IndexedTensor> tensors;  // sorted by name
  std::vector<std::string> shards;     // sorted, each once
  uint64_t total_size = 0;             // 0 if it does not say
};

/// What to read, and by which index if it was followed.
struct Selection {
  std::vector<std::string> names;
  std::unique_ptr<Index> index;
};

[[noreturn]] void reject(const std::string& path, const std::string& why) {
  fail(ErrorCode::invalid_input, fmt::format("[shards] {}: {}", path, why));
}

// simdjson keeps the first of two equal keys, so both are looked for.
std::optional<simdjson::dom::element> find_member(
    const Index& index, simdjson::dom::object object, std::string_view key
) {
  std::optional<simdjson::dom::element> found;
  for (auto field : object) {
    if (field.key == key) {
      if (found) {
        reject(index.path, fmt::format("duplicate key {}", quote(key)));
      }
      found = field.value;
    }
  }
  return found;
}

void read_weight_map(Index& index, simdjson::dom::object map) {
  index.tensors.reserve(map.size());
  for (auto field : map) {
    std::string_view shard;
    if (field.value.get(shard) != simdjson::SUCCESS) {
      reject(
          index.path,
          fmt::format("weight_map.{}: expected a file name", quote(field.key))
      );
    }
    index.tensors.push_back({field.key, shard});
    if (index.shards.empty() || index.shards.back() != shard) {
      index.shards.emplace_back(shard);
    }
  }
  if (index.tensors.empty()) {
    reject(index.path, "weight_map: no shard file names were found");
  }
  std::sort(index.shards.begin(), index.shards.end());
  index.shards.erase(
      std::unique(index.shards.begin(), index.shards.end()), index.shards.end()
  );
  std::sort(
      index.tensors.begin(),
      index.tensors.end(),
      [](const IndexedTensor& a, const IndexedTensor& b) {
        return a.tensor < b.tensor;
      }
  );
  auto twin = std::adjacent_find(
      index.tensors.begin(),
      index.tensors.end(),
      [](const IndexedTensor& a, const IndexedTensor& b) {
        return a.tensor == b.tensor;
      }
  );
  if (twin != index.tensors.end()) {
    reject(
        index.path,
        fmt::format("weight_map: {} appears twice", quote(twin->tensor))
    );
  }
}

// 0 unless the optional metadata tells a number of bytes.
uint64_t read_total_size(const Index& index, simdjson::dom::object root) {
  auto metadata = find_member(index, root, "metadata");
  simdjson::dom::object object;
  if (!metadata || metadata->get(object)) {
    return 0;
  }
  auto size = find_member(index, object, "total_size");
  uint64_t bytes = 0;
  return size && !size->get(bytes) ? bytes : 0;
}

// Null if the directory has no index.
std::unique_ptr<Index> read_index(const std::string& directory) {
  auto index = std::make_unique<Index>();
  index->path = join_path(directory, kIndexName);
  os::FileInfo info;
  if (!os::stat_path(index->path, info, false)) {
    return nullptr;
  }
  std::string text = read_file(index->path, kMaxIndex);
  simdjson::dom::object root;
  auto error =
      index->parser.allocate(std::max<size_t>(text.size(), 64), kMaxIndexDepth);
  if (!error) {
    error = index->parser.parse(text).get(root);
  }
  if (error) {
    reject(
        index->path,
        fmt::format("not a JSON object: {}", simdjson::error_message(error))
    );
  }
  auto member = find_member(*index, root, "weight_map");
  simdjson::dom::object map;
  if (!member || member->get(map)) {
    reject(index->path, "weight_map: missing or not an object");
  }
  read_weight_map(*index, map);
  index->total_size = read_total_size(*index, root);
  return index;
}

bool is_plain_name(const std::string& name) {
  constexpr std::string_view kForbidden("/\\\0", 3);
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(kForbidden) == std::string::npos;
}

bool is_consolidated(const std::string& name) {
  return name.starts_with(kConsolidated);
}

std::string link_target(const std::string& path) {
  std::error_code error;
  return std::filesystem::read_symlink(path, error).string();
}

/// What is at a name of the directory.
enum class Found { nothing, file, broken_link, other };

Found look_at(const std::string& path) {
  os::FileInfo info;
  if (os::stat_path(path, info)) {
    return info.regular ? Found::file : Found::other;
  }
  return os::stat_path(path, info, false) ? Found::broken_link : Found::nothing;
}

struct Listing {
  std::vector<std::string> files;  // sorted
  size_t broken = 0;
};

// The *.safetensors files of the directory itself.
Listing list_files(const std::string& directory) {
  Listing listing;
  for (std::string& name : os::list_directory(directory)) {
    if (!name.ends_with(kExtension) || name.front() == '.') {
      continue;
    }
    std::string path = join_path(directory, name);
    switch (look_at(path)) {
      case Found::file:
        listing.files.push_back(std::move(name));
        break;
      case Found::broken_link:
        ++listing.broken;
        log_warning(fmt::format(
            "[shards] {} is a link to {}, which is missing; skipped. "
            "Download the model again into a real local directory",
            path,
            quote(link_target(path))
        ));
        break;
      default:
        break;
    }
  }
  auto rest = std::stable_partition(
      listing.files.begin(),
      listing.files.end(),
      [](const std::string& name) { return !is_consolidated(name); }
  );
  if (rest != listing.files.begin()) {
    listing.files.erase(rest, listing.files.end());
  }
  return listing;
}

// The files that the index promises and the directory hasn't, with the reason.
struct Promises {
  std::vector<std::string> present;
  std::vector<std::string> missing;
};

Promises check_promises(const std::string& directory, const Index& index) {
  Promises promises;
  const std::vector<std::string> listed = os::list_directory(directory);
  for (const std::string& name : index.shards) {
    if (!is_plain_name(name)) {
      reject(
          index.path,
          fmt::format(
              "weight_map names {}; plain file names without separators are "
              "required",
              quote(name)
          )
      );
    }
    if (!std::binary_search(listed.begin(), listed.end(), name)) {
      promises.missing.push_back(quote(name));
      continue;
    }
    std::string path = join_path(directory, name);
    switch (look_at(path)) {
      case Found::file:
        promises.present.push_back(name);
        break;
      case Found::other:
        reject(path, "not a regular file");
      case Found::broken_link:
        promises.missing.push_back(fmt::format(
            "{} (a link to {})", quote(name), quote(link_target(path))
        ));
        break;
      default:
        promises.missing.push_back(quote(name));
    }
  }
  return promises;
}

[[noreturn]] void reject_incomplete(
    const std::string& directory, const Promises& promises
) {
  fail(
      ErrorCode::not_found,
      fmt::format(
          "[shards] {}: an incomplete download. Missing: {}; present: {}. "
          "Download the model again",
          directory,
          list_names(promises.missing, kListed),
          promises.present.empty() ? "nothing"
                                   : list_names(promises.present, kListed)
      )
  );
}

// Some file that is present isn't in the index.
bool is_stale(const Index& index, const Listing& listing) {
  return std::any_of(
      listing.files.begin(),
      listing.files.end(),
      [&](const std::string& name) {
        return !std::binary_search(
            index.shards.begin(), index.shards.end(), name
        );
      }
  );
}

Selection select_shards(const std::string& directory) {
  Selection selection;
  selection.index = read_index(directory);
  if (selection.index) {
    Promises promises = check_promises(directory, *selection.index);
    if (promises.missing.empty()) {
      selection.names = std::move(promises.present);
      return selection;
    }
    Listing listing = list_files(directory);
    if (!is_stale(*selection.index, listing)) {
      reject_incomplete(directory, promises);
    }
    log_warning(fmt::format(
        "[shards] {}: the index names files that do not match what is on "
        "disk, likely a repackaged quantisation; every {} file is loaded "
        "instead",
        directory,
        kExtension
    ));
    selection.index.reset();
    selection.names = std::move(listing.files);
    return selection;
  }
  Listing listing = list_files(directory);
  if (listing.files.empty()) {
    fail(
        ErrorCode::not_found,
        listing.broken > 0
            ? fmt::format(
                  "[shards] {}: all {} {} files are broken links. Download "
                  "the model again into a real local directory",
                  directory,
                  listing.broken,
                  kExtension
              )
            : fmt::format("[shards] {}: no {} file", directory, kExtension)
    );
  }
  selection.names = std::move(listing.files);
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
  Selection selection = select_shards(directory);
  refuse_escapes(directory, selection.names);
  return selection;
}

[[noreturn]] void reject_promise(
    const Index& index, const IndexedTensor& promised
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
void check_promised_tensors(const Index& index, const WeightMap& weights) {
  auto at = weights.begin();
  for (const IndexedTensor& promised : index.tensors) {
    while (at != weights.end() && at->first < promised.tensor) {
      ++at;
    }
    if (at == weights.end() || at->first != promised.tensor) {
      reject_promise(index, promised);
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
        auto file = MappedFile::open(paths[i]);
        headers[i] = read_safetensors_header(file->bytes(), paths[i]);
        if (file->faulted()) {
          fail(
              ErrorCode::io,
              fmt::format("[safetensors] {}: cannot be read", paths[i])
          );
        }
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
    auto file = MappedFile::open(path);
    auto entries = read_safetensors_header(file->bytes(), path);
    uint64_t bytes = 0;
    for (const TensorEntry& entry : entries) {
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
  for (const std::string& name : select_readable(directory).names) {
    paths.push_back(join_path(directory, name));
  }
  return paths;
}

std::optional<std::vector<std::string>> tensor_names(
    const std::string& directory
) {
  std::vector<std::string> names;
  auto index = read_index(directory);
  bool complete =
      index != nullptr && check_promises(directory, *index).missing.empty();
  Listing listing = complete ? Listing{} : list_files(directory);
  if (index != nullptr && (complete || !is_stale(*index, listing))) {
    names.reserve(index->tensors.size());
    for (const IndexedTensor& tensor : index->tensors) {
      names.emplace_back(tensor.tensor);
    }
    return names;
  }
  if (listing.files.empty()) {
    return std::nullopt;
  }
  refuse_escapes(directory, listing.files);
  for (const std::string& file : listing.files) {
    std::string path = join_path(directory, file);
    auto mapped = MappedFile::open(path);
    for (TensorEntry& entry : read_safetensors_header(mapped->bytes(), path)) {
      names.push_back(std::move(entry.name));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::vector<int64_t>> tensor_shape(
    const std::string& directory, std::string_view name
) {
  Listing listing = list_files(directory);
  refuse_escapes(directory, listing.files);
  for (const std::string& file : listing.files) {
    std::string path = join_path(directory, file);
    auto mapped = MappedFile::open(path);
    for (TensorEntry& entry : read_safetensors_header(mapped->bytes(), path)) {
      if (entry.name == name) {
        return std::move(entry.shape);
      }
    }
  }
  return std::nullopt;
}

WeightMap load_weights(const std::string& directory) {
  Selection selection = select_readable(directory);
  WeightMap weights;
  weights.origin = directory;
  for (const std::string& name : selection.names) {
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
  for (const std::string& name : selection.names) {
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
  for (const std::string& name : selection.names) {
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
