#include "mlxcel/weights/shard_index.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <new>
#include <optional>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/shard_files.h"
#include "mlxcel/core/text.h"

namespace mlxcel {

namespace {

constexpr uint64_t kMaxIndex = uint64_t{256} << 20;
constexpr size_t kMaxIndexDepth = 64;

[[noreturn]] void reject(const std::string& path, const std::string& why) {
  fail(ErrorCode::invalid_input, fmt::format("[shards] {}: {}", path, why));
}

// simdjson keeps the first of two equal keys, so both are looked for.
std::optional<simdjson::dom::element> find_member(
    const ShardIndex& index, simdjson::dom::object object, std::string_view key
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

void read_weight_map(ShardIndex& index, simdjson::dom::object map) {
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
  for (const std::string& name : index.shards) {
    if (!is_plain_file_name(name)) {
      reject(
          index.path,
          fmt::format(
              "weight_map names {}; plain file names without separators are "
              "required",
              quote(name)
          )
      );
    }
  }
  std::vector<std::string_view> names(index.tensors.size());
  std::transform(
      index.tensors.begin(),
      index.tensors.end(),
      names.begin(),
      [](const IndexedTensor& entry) { return entry.tensor; }
  );
  if (auto twin = find_repeated(names)) {
    reject(
        index.path, fmt::format("weight_map: {} appears twice", quote(*twin))
    );
  }
}

// 0 unless the optional metadata tells a number of bytes.
uint64_t read_total_size(const ShardIndex& index, simdjson::dom::object root) {
  auto metadata = find_member(index, root, "metadata");
  simdjson::dom::object object;
  if (!metadata || metadata->get(object)) {
    return 0;
  }
  auto size = find_member(index, object, "total_size");
  uint64_t bytes = 0;
  return size && !size->get(bytes) ? bytes : 0;
}

}  // namespace

std::unique_ptr<ShardIndex> read_shard_index(const std::string& directory) {
  auto index = std::make_unique<ShardIndex>();
  index->path = join_path(directory, kShardIndex);
  os::FileInfo info;
  if (!os::stat_path(index->path, info, false)) {
    return nullptr;
  }
  std::string text = read_file(index->path, kMaxIndex);
  auto parser = std::make_shared<simdjson::dom::parser>();
  index->text = parser;
  simdjson::dom::object root;
  auto error =
      parser->allocate(std::max<size_t>(text.size(), 64), kMaxIndexDepth);
  if (!error) {
    error = parser->parse(text).get(root);
  }
  if (error == simdjson::MEMALLOC) {
    throw std::bad_alloc();
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

}  // namespace mlxcel
