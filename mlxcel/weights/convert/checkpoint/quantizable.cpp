#include "mlxcel/weights/convert/checkpoint/quantizable.h"

#include <array>
#include <string_view>

#include "mlxcel/core/text.h"

namespace mlxcel::convert {

namespace {

constexpr std::array<std::string_view, 13> kNeverInside = {
    "norm",
    "conv",
    "rotary",
    "router",
    "position",
    "pos_embed",
    "patch",
    "vision",
    "visual",
    "audio",
    "ln_",
    "multi_modal",
    "connector"};

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('.') + 1);
}

bool is_stack(std::string_view path) {
  return path.find("switch_mlp.") != std::string_view::npos ||
         path.find("experts.") != std::string_view::npos;
}

}  // namespace

Quantizable::Quantizable(const TensorTable& table) {
  for (const TensorSpec& tensor : table) {
    if (tensor.role == TensorRole::unused) {
      continue;
    }
    int64_t columns = tensor.shape.empty() ? 0 : tensor.shape.back();
    roles_.emplace(tensor.name, Entry{tensor.role, roles_.size(), columns});
  }
}

bool Quantizable::operator()(
    const std::string& name, const std::vector<int64_t>& shape
) const {
  constexpr std::string_view kWeight = ".weight";
  if (!name.ends_with(kWeight) || shape.size() < 2 || shape.size() > 3) {
    return false;
  }
  std::string path = name.substr(0, name.size() - kWeight.size());
  if (has_table()) {
    auto found = roles_.find(name);
    bool matrix =
        found != roles_.end() && found->second.role == TensorRole::matrix;
    return matrix || (shape.size() == 3 && is_stack(path));
  }
  std::string lower = ascii_lower(path);
  for (std::string_view part : kNeverInside) {
    if (lower.find(part) != std::string::npos) {
      return false;
    }
  }
  // The router of a mixture of experts, not `gate_proj`.
  if (last_part(lower) == "gate") {
    return false;
  }
  return shape.size() == 2 || is_stack(path);
}

bool Quantizable::knows(const std::string& name) const {
  return !has_table() || roles_.contains(name);
}

size_t Quantizable::order(const std::string& name) const {
  auto found = roles_.find(name);
  return found == roles_.end() ? roles_.size() : found->second.order;
}

int64_t Quantizable::columns(const std::string& name) const {
  auto found = roles_.find(name);
  return found == roles_.end() ? 0 : found->second.columns;
}

}  // namespace mlxcel::convert
