#include "mlxcel/weights/convert/checkpoint/checkpoint_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace mlxcel::convert {

namespace {

std::string megabytes(uint64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

int64_t values_of(const TensorReport& tensor) {
  int64_t values = 1;
  for (int64_t dim : tensor.shape) {
    values *= dim;
  }
  return values;
}

struct Line {
  int64_t tensors = 0;
  uint64_t source_bytes = 0;
  uint64_t target_bytes = 0;
  TensorError error;
  const TensorReport* worst = nullptr;
};

std::string line_text(const std::string& formats, const Line& line) {
  std::string text = fmt::format(
      "\n  {} x {}: {} -> {}",
      formats,
      line.tensors,
      megabytes(line.source_bytes),
      megabytes(line.target_bytes)
  );
  if (line.error.error == 0) {
    return text + ", without loss";
  }
  return text + fmt::format(
                    ", relative RMS error {:.2e} (most: {:.2e}, {})",
                    line.error.relative_rms(),
                    line.worst->error.relative_rms(),
                    line.worst->name
                );
}

}  // namespace

std::string CheckpointReport::describe() const {
  std::map<std::string, Line> lines;
  uint64_t source = 0;
  uint64_t target = 0;
  int64_t values = 0;
  std::string dense;
  for (const TensorReport& tensor : tensors) {
    Line& line = lines[tensor.source + " -> " + tensor.target];
    ++line.tensors;
    line.source_bytes += tensor.source_bytes;
    line.target_bytes += tensor.target_bytes;
    line.error.add(tensor.error);
    if (line.worst == nullptr ||
        tensor.error.relative_rms() > line.worst->error.relative_rms()) {
      line.worst = &tensor;
    }
    source += tensor.source_bytes;
    target += tensor.target_bytes;
    values += values_of(tensor);
    if (!tensor.left_dense.empty()) {
      dense +=
          fmt::format("\n  left dense: {}, {}", tensor.name, tensor.left_dense);
    }
  }
  std::string text = fmt::format(
      "{} tensors, {} -> {}, {:.3f} bits per weight, in {:.1f} s",
      tensors.size(),
      megabytes(source),
      megabytes(target),
      8.0 * static_cast<double>(target) /
          static_cast<double>(std::max<int64_t>(values, 1)),
      seconds
  );
  for (const auto& [formats, line] : lines) {
    text += line_text(formats, line);
  }
  text += dense;
  for (const std::string& note : notes) {
    text += "\n  note: " + note;
  }
  return text;
}

std::string CheckpointReport::json() const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TensorReport& tensor : tensors) {
    nlohmann::ordered_json entry = {
        {"name", tensor.name},
        {"shape", tensor.shape},
        {"source", tensor.source},
        {"target", tensor.target},
        {"source_bytes", tensor.source_bytes},
        {"target_bytes", tensor.target_bytes},
        {"relative_rms", tensor.error.relative_rms()},
        {"max_error", tensor.error.largest_error},
        {"max_value", tensor.error.largest_value}};
    if (!tensor.left_dense.empty()) {
      entry["left_dense"] = tensor.left_dense;
    }
    list.push_back(std::move(entry));
  }
  nlohmann::ordered_json json = {
      {"seconds", seconds},
      {"files", files},
      {"notes", notes},
      {"tensors", list}};
  return json.dump(2) + "\n";
}

}  // namespace mlxcel::convert
