#include "mlxcel/weights/weight_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"

namespace mlxcel {

void WeightFiles::add(const Weight& weight) {
  std::shared_ptr<const MappedFile> file = weight.source->file();
  if (file != nullptr &&
      std::find(files_.begin(), files_.end(), file) == files_.end()) {
    files_.push_back(std::move(file));
  }
}

std::string WeightFiles::find_fault() const {
  for (const auto& file : files_) {
    if (file->faulted()) {
      return fmt::format(
          "[file] {}: a part of it could not be read; it was cut or its disk "
          "failed while in use, load the model again",
          file->path()
      );
    }
    // A file that is cut within its last page reads as zero without a fault.
    if (file->changed()) {
      return fmt::format(
          "[file] {}: was written to while in use, load the model again",
          file->path()
      );
    }
  }
  return "";
}

void WeightFiles::check() {
  if (broken_.empty()) {
    broken_ = find_fault();
  }
  throw_if_broken();
}

void WeightFiles::throw_if_broken() const {
  if (!broken_.empty()) {
    fail(ErrorCode::io, broken_);
  }
}

}  // namespace mlxcel
