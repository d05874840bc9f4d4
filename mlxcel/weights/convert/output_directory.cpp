#include "mlxcel/weights/convert/output_directory.h"

#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/os.h"

namespace mlxcel::convert {

namespace {

std::string without_slashes(const std::string& path) {
  size_t end = path.find_last_not_of('/');
  return end == std::string::npos ? path.substr(0, 1) : path.substr(0, end + 1);
}

bool exists(const std::string& path) {
  os::FileInfo info;
  return os::stat_path(path, info, false);
}

bool is_model_file(const std::string& name) {
  return name.ends_with(".safetensors") ||
         name == "model.safetensors.index.json";
}

}  // namespace

OutputDirectory::OutputDirectory(const std::string& path, bool force)
    : path_(without_slashes(path)), existed_(exists(path_)) {
  if (path_.empty()) {
    fail(ErrorCode::usage, "[convert] the output directory has no name");
  }
  std::string suffix = ".tmp-" + os::random_suffix();
  if (existed_) {
    if (!directory_exists(path_)) {
      fail(
          ErrorCode::usage,
          fmt::format("[convert] {}: exists and is no directory", path_)
      );
    }
    if (!force && !os::list_directory(path_).empty()) {
      fail(
          ErrorCode::usage,
          fmt::format(
              "[convert] {}: the directory holds files already (--force "
              "replaces its model files)",
              path_
          )
      );
    }
    staging_ = join_path(path_, ".convert" + suffix);
  } else {
    staging_ = path_ + suffix;
    for (std::string parent = parent_path(path_); !exists(parent);
         parent = parent_path(parent)) {
      made_parents_.push_back(parent);
    }
  }
  try {
    os::make_directories(staging_);
  } catch (const Error&) {
    remove_parents();
    throw;
  }
}

OutputDirectory::~OutputDirectory() {
  if (staging_.empty()) {
    return;
  }
  try {
    for (const std::string& name : os::list_directory(staging_)) {
      os::remove_path(join_path(staging_, name));
    }
  } catch (const Error&) {
    // The directory is gone already.
  }
  os::remove_path(staging_);
  remove_parents();
}

void OutputDirectory::remove_parents() noexcept {
  for (const std::string& parent : made_parents_) {
    os::remove_path(parent);
  }
}

void OutputDirectory::publish() {
  if (existed_) {
    replace_files();
    os::remove_path(staging_);
  } else {
    os::rename_file(staging_, path_);
  }
  staging_.clear();
}

void OutputDirectory::replace_files() {
  std::vector<std::string> names = os::list_directory(staging_);
  for (const std::string& name : names) {
    os::rename_file(join_path(staging_, name), join_path(path_, name));
  }
  for (const std::string& name : os::list_directory(path_)) {
    if (is_model_file(name) &&
        !std::binary_search(names.begin(), names.end(), name)) {
      os::remove_path(join_path(path_, name));
    }
  }
}

}  // namespace mlxcel::convert
