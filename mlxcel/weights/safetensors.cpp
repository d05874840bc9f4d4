#include "mlxcel/weights/safetensors.h"

#include <fmt/format.h>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/log.h"
#include "mlxcel/core/os.h"

namespace mlxcel {

namespace {

class MappedExtent : public WeightSource {
 public:
  MappedExtent(
      std::shared_ptr<const MappedFile> file, uint64_t begin, uint64_t end
  )
      : file_(std::move(file)),
        bytes_(file_->bytes().subspan(begin, end - begin)) {}

  std::span<const std::byte> bytes() const override {
    return bytes_;
  }
  std::string origin() const override {
    return file_->path();
  }
  void release() const override {
    os::wont_need(bytes_.data(), bytes_.size());
  }
  bool faulted() const override {
    return file_->faulted();
  }
  std::shared_ptr<const MappedFile> file() const override {
    return file_;
  }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::span<const std::byte> bytes_;
};

void warn_if_replaced(
    const WeightMap& weights, const std::string& name, const Weight& weight
) {
  const Weight* old = weights.find(name);
  if (old != nullptr && old->shape != weight.shape) {
    log_warning(fmt::format(
        "[weights] {}: {} in {} replaces {} in {}",
        quote(name),
        weight.describe(),
        weight.source->origin(),
        old->describe(),
        old->source->origin()
    ));
  }
}

}  // namespace

void load_safetensors(const std::string& path, WeightMap& weights) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  auto entries = read_safetensors_header(file->bytes(), path);
  if (file->faulted()) {
    fail(ErrorCode::io, fmt::format("[safetensors] {}: cannot be read", path));
  }
  for (TensorEntry& entry : entries) {
    Weight weight;
    weight.dtype = entry.dtype;
    weight.shape = std::move(entry.shape);
    weight.source =
        std::make_shared<MappedExtent>(file, entry.begin, entry.end);
    warn_if_replaced(weights, entry.name, weight);
    weights.insert(std::move(entry.name), std::move(weight));
  }
}

}  // namespace mlxcel
