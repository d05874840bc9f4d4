#include "mlxcel/weights/convert/checkpoint/side_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "mlxcel/core/containment.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/text.h"

namespace mlxcel::convert {

namespace {

constexpr size_t kShownNames = 5;

bool is_weight_file(const std::string& name) {
  constexpr std::array<std::string_view, 12> kEndings = {
      ".safetensors",
      ".safetensors.index.json",
      ".bin",
      ".bin.index.json",
      ".pt",
      ".pth",
      ".ckpt",
      ".gguf",
      ".npz",
      ".onnx",
      ".h5",
      ".msgpack"};
  return std::any_of(kEndings.begin(), kEndings.end(), [&](auto ending) {
    return name.ends_with(ending);
  });
}

// What would say of the new weights what was true of the old ones.
bool is_rewritten(const std::string& name) {
  return name == "config.json" || name == "hf_quant_config.json" ||
         name == "quantize_config.json" || name == "quant_config.json";
}

}  // namespace

void copy_side_files(
    const std::string& from,
    const std::string& to,
    std::vector<std::string>& copied,
    std::vector<std::string>& notes
) {
  std::vector<std::string> left;
  for (const std::string& name : os::list_directory(from)) {
    std::string path = join_path(from, name);
    os::FileInfo info;
    if (name.starts_with(".") || is_weight_file(name) || is_rewritten(name) ||
        !os::stat_path(path, info)) {
      continue;
    }
    if (!info.regular) {
      left.push_back(name);
      continue;
    }
    if (!stays_inside(from, path)) {
      fail(
          ErrorCode::invalid_input,
          fmt::format("[convert] {}: a link out of the directory", path)
      );
    }
    auto source = MappedFile::open(path);
    AtomicFile file(join_path(to, name));
    file.write(source->bytes().data(), source->bytes().size());
    if (source->faulted()) {
      fail(ErrorCode::io, fmt::format("[convert] {}: cannot be read", path));
    }
    file.commit();
    copied.push_back(name);
  }
  if (!left.empty()) {
    notes.push_back("folders left out: " + list_names(left, kShownNames));
  }
}

}  // namespace mlxcel::convert
