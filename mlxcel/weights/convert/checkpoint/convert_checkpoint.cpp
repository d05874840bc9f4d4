#include "mlxcel/weights/convert/checkpoint/convert_checkpoint.h"

#include <fmt/format.h>

#include <filesystem>

#include "mlxcel/config/config.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/os_files.h"
#include "mlxcel/weights/convert/checkpoint/output_config.h"
#include "mlxcel/weights/convert/checkpoint/side_files.h"
#include "mlxcel/weights/convert/output_directory.h"
#include "mlxcel/weights/shards.h"
#include "mlxcel/weights/transform/vendor.h"
#include "mlxcel/weights/transform/wrapper_names.h"
#include "mlxcel/weights/weight_files.h"

namespace mlxcel::convert {

namespace {

void refuse_same(const std::string& directory, const std::string& out_dir) {
  std::error_code error;
  if (std::filesystem::equivalent(directory, out_dir, error)) {
    fail(
        ErrorCode::usage,
        fmt::format("[convert] {}: the output is the input", out_dir)
    );
  }
}

WeightMap read_weights(
    const std::string& directory,
    const Json& config,
    const CheckpointOptions& options,
    WeightFiles& files
) {
  WeightMap weights = load_weights(directory);
  for (const auto& [name, weight] : weights) {
    files.add(weight);
  }
  convert_vendor_formats(config, weights, DeviceFacts{});
  if (!options.table.empty()) {
    unwrap_text_names(weights);
  }
  return weights;
}

uint64_t source_bytes(const PlannedTensor& tensor) {
  if (tensor.parts.empty()) {
    return tensor.raw.bytes().size();
  }
  return static_cast<uint64_t>(
      tensor.rows() * tensor.parts[0].format.row_bytes(tensor.cols())
  );
}

void need_space(const std::string& path, uint64_t bytes) {
  auto room = os::free_space(path);
  if (room && *room < bytes) {
    fail(
        ErrorCode::io,
        fmt::format(
            "[convert] {}: {} bytes are needed, {} are free", path, bytes, *room
        )
    );
  }
}

std::string raw_name(const PlannedTensor& tensor) {
  return tensor.parts.empty() ? std::string(dtype_name(tensor.raw.dtype))
                              : tensor.target.describe();
}

void write_tensors(
    const std::string& folder,
    Plan& plan,
    const CheckpointOptions& options,
    CheckpointReport& report
) {
  std::vector<OutputTensor> outputs;
  std::vector<size_t> firsts;
  uint64_t total = 0;
  for (const PlannedTensor& tensor : plan.tensors) {
    firsts.push_back(outputs.size());
    total += source_bytes(tensor);
    TensorReport row{
        tensor.name,
        tensor.shape,
        tensor.parts.empty() ? raw_name(tensor)
                             : tensor.source_format().describe(),
        raw_name(tensor),
        source_bytes(tensor),
        0,
        {},
        tensor.left_dense};
    for (OutputTensor& output : output_tensors(tensor)) {
      row.target_bytes += output.bytes;
      outputs.push_back(std::move(output));
    }
    report.tensors.push_back(std::move(row));
  }
  SafetensorsWriter writer(folder, std::move(outputs), options.shard_bytes);
  need_space(folder, writer.total_bytes());
  uint64_t done = 0;
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    PlannedTensor& tensor = plan.tensors[i];
    report.tensors[i].error =
        write_tensor(tensor, firsts[i], writer, [&](uint64_t bytes) {
          done += bytes;
          if (options.progress) {
            options.progress(tensor.name, done, total);
          }
        });
    // Planes of a vendor's format are let go, and mappings read to the end.
    tensor.parts.clear();
    tensor.raw.source.reset();
  }
  writer.finish();
  report.files = writer.files();
  if (report.files.size() > 1) {
    report.files.push_back("model.safetensors.index.json");
  }
}

}  // namespace

CheckpointReport convert_checkpoint(
    const std::string& directory,
    const std::string& out_dir,
    const CheckpointOptions& options
) {
  double start = os::now();
  refuse_same(directory, out_dir);
  Json config = read_config(directory);
  WeightFiles files;
  Plan plan = make_plan(
      read_weights(directory, config, options, files),
      {config, options.action, options.recipe, options.dtype, options.table}
  );
  OutputDirectory out(out_dir, options.force);
  AtomicFile file(join_path(out.staging(), "config.json"));
  file.write(output_config(config, plan, options.dtype));
  file.commit();
  CheckpointReport report;
  report.notes = plan.notes;
  write_tensors(out.staging(), plan, options, report);
  files.check();
  report.files.push_back("config.json");
  copy_side_files(directory, out.staging(), report.files, report.notes);
  out.publish();
  report.seconds = os::now() - start;
  return report;
}

}  // namespace mlxcel::convert
