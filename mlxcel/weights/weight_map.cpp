#include "mlxcel/weights/weight_map.h"

#include <fmt/format.h>

#include <cstring>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"

namespace mlxcel {

namespace {

class BufferSource : public WeightSource {
 public:
  BufferSource(std::vector<std::byte> bytes, std::string origin)
      : bytes_(std::move(bytes)), origin_(std::move(origin)) {}

  std::span<const std::byte> bytes() const override {
    return bytes_;
  }
  std::string origin() const override {
    return origin_;
  }

 private:
  std::vector<std::byte> bytes_;
  std::string origin_;
};

}  // namespace

std::shared_ptr<const WeightSource> buffer_source(
    std::vector<std::byte> bytes, std::string origin
) {
  return std::make_shared<BufferSource>(std::move(bytes), std::move(origin));
}

int64_t Weight::elements() const {
  auto product = checked_product(shape);
  if (!product || *product > INT64_MAX) {
    fail(
        ErrorCode::invalid_input,
        fmt::format("[weights] {}: more elements than can be", describe())
    );
  }
  return static_cast<int64_t>(*product);
}

std::string Weight::describe() const {
  return fmt::format("[{}] {}", fmt::join(shape, ", "), dtype_name(dtype));
}

std::vector<float> to_float(const Weight& weight) {
  if (!is_weight_float(weight.dtype)) {
    fail(
        ErrorCode::unsupported,
        fmt::format(
            "[weights] {} in {}: expected F32, F16 or BF16",
            weight.describe(),
            weight.source->origin()
        )
    );
  }
  int64_t count = weight.elements();
  std::span<const std::byte> bytes = weight.bytes();
  if (bytes.size() / static_cast<size_t>(dtype_size(weight.dtype)) !=
      static_cast<size_t>(count)) {
    fail(
        ErrorCode::internal,
        fmt::format(
            "[weights] {} in {}: {} bytes do not fit the shape",
            weight.describe(),
            weight.source->origin(),
            bytes.size()
        )
    );
  }
  std::vector<float> values(static_cast<size_t>(count));
  const std::byte* from = bytes.data();
  switch (weight.dtype) {
    case DType::f32:
      if (count > 0) {
        std::memcpy(values.data(), from, bytes.size());
      }
      break;
    case DType::f16:
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = f16_to_float(load_le<uint16_t>(from + 2 * i));
      }
      break;
    default:
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = bf16_to_float(load_le<uint16_t>(from + 2 * i));
      }
  }
  return values;
}

const Weight* WeightMap::find(std::string_view name) const {
  auto found = weights_.find(name);
  return found == weights_.end() ? nullptr : &found->second;
}

const Weight& WeightMap::at(std::string_view name) const {
  if (const Weight* weight = find(name)) {
    return *weight;
  }
  fail(
      ErrorCode::not_found,
      fmt::format("[weights] {}: no such tensor in {}", name, origin)
  );
}

void WeightMap::insert(std::string name, Weight weight) {
  weights_.insert_or_assign(std::move(name), std::move(weight));
}

void WeightMap::erase(const std::string& name) {
  weights_.erase(name);
}

std::vector<std::pair<std::string, Weight>> WeightMap::take_if(
    const std::function<bool(std::string_view name)>& wanted
) {
  std::vector<std::pair<std::string, Weight>> taken;
  for (auto at = weights_.begin(); at != weights_.end();) {
    if (!wanted(at->first)) {
      ++at;
      continue;
    }
    auto node = weights_.extract(at++);
    taken.emplace_back(std::move(node.key()), std::move(node.mapped()));
  }
  return taken;
}

void WeightMap::rename(const std::string& from, std::string to) {
  if (from == to) {
    at(from);
    return;
  }
  Weight weight = at(from);
  weights_.erase(from);
  insert(std::move(to), std::move(weight));
}

}  // namespace mlxcel
