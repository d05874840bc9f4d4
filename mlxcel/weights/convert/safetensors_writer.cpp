#include "mlxcel/weights/convert/safetensors_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "mlxcel/core/error.h"
#include "mlxcel/weights/convert/json_text.h"

namespace mlxcel::convert {

std::string safetensors_header(const TensorEntry* entries, size_t count) {
  std::string json = R"({"__metadata__":{"format":"mlx"})";
  uint64_t offset = 0;
  for (size_t i = 0; i < count; ++i) {
    const TensorEntry& entry = entries[i];
    json += ',';
    append_json(json, entry.name);
    json += fmt::format(
        R"(:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
        entry.dtype,
        fmt::join(entry.shape, ","),
        offset,
        offset + entry.bytes
    );
    offset += entry.bytes;
  }
  json += '}';
  std::string header(sizeof(uint64_t), '\0');
  uint64_t length = json.size();
  for (size_t i = 0; i < sizeof(length); ++i) {
    header[i] = static_cast<char>(length >> (8 * i));
  }
  return header + json;
}

SafetensorsWriter::SafetensorsWriter(
    std::string directory,
    std::vector<TensorEntry> entries,
    uint64_t shard_bytes
)
    : directory_(std::move(directory)), entries_(std::move(entries)) {
  uint64_t in_shard = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    // A tensor above the limit gets a file of its own.
    if (in_shard > 0 && in_shard + entries_[i].bytes > shard_bytes) {
      shard_ends_.push_back(i);
      in_shard = 0;
    }
    in_shard += entries_[i].bytes;
    total_ += entries_[i].bytes;
  }
  shard_ends_.push_back(entries_.size());
  size_t count = shard_ends_.size();
  for (size_t i = 0; i < count; ++i) {
    files_.push_back(
        count == 1
            ? "model.safetensors"
            : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, count)
    );
  }
}

void SafetensorsWriter::next_file() {
  if (file_) {
    file_->commit();
  }
  size_t begin = shard_ == 0 ? 0 : shard_ends_[shard_ - 1];
  file_ = std::make_unique<AtomicFile>(join_path(directory_, files_[shard_]));
  file_->write(
      safetensors_header(entries_.data() + begin, shard_ends_[shard_] - begin)
  );
  ++shard_;
}

void SafetensorsWriter::write(const void* data, uint64_t count) {
  if (entry_ == entries_.size() || count > entries_[entry_].bytes - done_) {
    fail(ErrorCode::internal, "[safetensors] more bytes than announced");
  }
  if (shard_ == 0 || entry_ == shard_ends_[shard_ - 1]) {
    next_file();
  }
  file_->write(data, count);
  done_ += count;
  if (done_ == entries_[entry_].bytes) {
    ++entry_;
    done_ = 0;
  }
}

void SafetensorsWriter::finish() {
  if (entry_ != entries_.size() || !file_) {
    fail(ErrorCode::internal, "[safetensors] fewer bytes than announced");
  }
  file_->commit();
  file_.reset();
  if (files_.size() > 1) {
    write_index();
  }
}

void SafetensorsWriter::write_index() const {
  std::map<std::string, const std::string*> sorted;
  size_t entry = 0;
  for (size_t shard = 0; shard < files_.size(); ++shard) {
    for (; entry < shard_ends_[shard]; ++entry) {
      sorted.emplace(entries_[entry].name, &files_[shard]);
    }
  }
  std::string json = fmt::format(
      "{{\n  \"metadata\": {{\"total_size\": {}}},\n  \"weight_map\": {{",
      total_
  );
  const char* separator = "\n";
  for (const auto& [name, file] : sorted) {
    json += separator;
    json += "    ";
    append_json(json, name);
    json += ": ";
    append_json(json, *file);
    separator = ",\n";
  }
  json += "\n  }\n}\n";
  AtomicFile index(join_path(directory_, "model.safetensors.index.json"));
  index.write(json);
  index.commit();
}

}  // namespace mlxcel::convert
