#include "mlxcel/weights/safetensors_writer.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "mlxcel/core/error.h"

namespace mlxcel {

namespace {

std::string json_string(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    fail(
        ErrorCode::invalid_input,
        fmt::format("[safetensors] {}: not valid UTF-8", quote(text))
    );
  }
}

}  // namespace

std::string safetensors_header(const OutputTensor* tensors, size_t count) {
  std::string json = R"({"__metadata__":{"format":"mlx"})";
  uint64_t offset = 0;
  for (size_t i = 0; i < count; ++i) {
    const OutputTensor& tensor = tensors[i];
    json += fmt::format(
        R"(,{}:{{"data_offsets":[{},{}],"dtype":"{}","shape":[{}]}})",
        json_string(tensor.name),
        offset,
        offset + tensor.bytes,
        tensor.dtype,
        fmt::join(tensor.shape, ",")
    );
    offset += tensor.bytes;
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
    std::vector<OutputTensor> tensors,
    uint64_t shard_bytes
)
    : directory_(std::move(directory)), tensors_(std::move(tensors)) {
  uint64_t in_shard = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    // A tensor above the limit gets a file of its own.
    if (in_shard > 0 && in_shard + tensors_[i].bytes > shard_bytes) {
      shard_ends_.push_back(i);
      in_shard = 0;
    }
    in_shard += tensors_[i].bytes;
    total_ += tensors_[i].bytes;
  }
  shard_ends_.push_back(tensors_.size());
  size_t count = shard_ends_.size();
  for (size_t i = 0; i < count; ++i) {
    files_.push_back(
        count == 1
            ? "model.safetensors"
            : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, count)
    );
  }
}

void SafetensorsWriter::open_file() {
  size_t shard = open_.size();
  size_t begin = shard == 0 ? 0 : shard_ends_[shard - 1];
  open_.push_back(
      std::make_unique<AtomicFile>(join_path(directory_, files_[shard]))
  );
  open_.back()->write(
      safetensors_header(tensors_.data() + begin, shard_ends_[shard] - begin)
  );
}

void SafetensorsWriter::skip_empty() {
  while (tensor_ < tensors_.size() && tensors_[tensor_].bytes == done_) {
    ++tensor_;
    done_ = 0;
  }
}

void SafetensorsWriter::write(const void* data, uint64_t count) {
  if (count == 0) {
    return;
  }
  skip_empty();
  if (tensor_ == tensors_.size() || count > tensors_[tensor_].bytes - done_) {
    fail(ErrorCode::internal, "[safetensors] more bytes than announced");
  }
  while (open_.empty() || tensor_ >= shard_ends_[open_.size() - 1]) {
    open_file();
  }
  open_.back()->write(data, count);
  done_ += count;
}

void SafetensorsWriter::place_tensors() {
  size_t tensor = 0;
  for (size_t file = 0; file < files_.size(); ++file) {
    open_file();
    open_.back()->flush();
    uint64_t offset = open_.back()->written();
    for (; tensor < shard_ends_[file]; ++tensor) {
      places_.push_back({file, offset});
      offset += tensors_[tensor].bytes;
    }
  }
}

void SafetensorsWriter::write_at(
    size_t tensor, uint64_t offset, const void* data, uint64_t count
) {
  std::call_once(placing_, [&] { place_tensors(); });
  if (offset > tensors_[tensor].bytes ||
      count > tensors_[tensor].bytes - offset) {
    fail(ErrorCode::internal, "[safetensors] more bytes than announced");
  }
  const Place& place = places_[tensor];
  open_[place.file]->write_at(place.offset + offset, data, count);
  placed_ += count;
}

void SafetensorsWriter::finish() {
  skip_empty();
  bool whole = places_.empty() ? tensor_ == tensors_.size() : placed_ == total_;
  if (!whole) {
    fail(ErrorCode::internal, "[safetensors] fewer bytes than announced");
  }
  while (open_.size() < files_.size()) {
    open_file();
  }
  for (auto& file : open_) {
    file->commit();
  }
  open_.clear();
  if (files_.size() > 1) {
    write_index();
  }
}

void SafetensorsWriter::write_index() const {
  std::map<std::string, const std::string*> sorted;
  size_t tensor = 0;
  for (size_t shard = 0; shard < files_.size(); ++shard) {
    for (; tensor < shard_ends_[shard]; ++tensor) {
      sorted.emplace(tensors_[tensor].name, &files_[shard]);
    }
  }
  std::string json = fmt::format(
      "{{\n  \"metadata\": {{\"total_size\": {}}},\n  \"weight_map\": {{",
      total_
  );
  const char* separator = "\n";
  for (const auto& [name, file] : sorted) {
    json += fmt::format(
        "{}    {}: {}", separator, json_string(name), json_string(*file)
    );
    separator = ",\n";
  }
  json += "\n  }\n}\n";
  AtomicFile index(join_path(directory_, "model.safetensors.index.json"));
  index.write(json);
  index.commit();
}

}  // namespace mlxcel
