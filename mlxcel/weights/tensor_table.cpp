#include "mlxcel/weights/tensor_table.h"

#include <fmt/format.h>

#include <set>

#include "mlxcel/core/error.h"
#include "mlxcel/core/log.h"
#include "mlxcel/core/text.h"

namespace mlxcel {

namespace {

constexpr size_t kListed = 40;

}  // namespace

void check_tensors(const TensorTable& table, const WeightMap& weights) {
  std::set<std::string> expected;
  std::vector<std::string> missing;
  for (const TensorSpec& tensor : table) {
    if (tensor.required && !weights.contains(tensor.name)) {
      missing.push_back(tensor.name);
    }
    constexpr std::string_view kWeight = ".weight";
    if (tensor.role == TensorRole::matrix && tensor.name.ends_with(kWeight)) {
      std::string path =
          tensor.name.substr(0, tensor.name.size() - kWeight.size());
      expected.insert(path + ".scales");
      expected.insert(path + ".biases");
      expected.insert(path + ".global_scale");
    }
    expected.insert(tensor.name);
  }
  if (!missing.empty()) {
    fail(
        ErrorCode::not_found,
        fmt::format(
            "[weights] {}: {} of {} tensors are missing: {}",
            weights.origin,
            missing.size(),
            table.size(),
            list_names(missing, kListed)
        )
    );
  }
  std::vector<std::string> unexpected;
  for (const auto& [name, weight] : weights) {
    if (!expected.contains(name)) {
      unexpected.push_back(quote(name));
    }
  }
  if (!unexpected.empty()) {
    log_warning(fmt::format(
        "[weights] {}: {} tensors are not used: {}",
        weights.origin,
        unexpected.size(),
        list_names(unexpected, kListed)
    ));
  }
}

}  // namespace mlxcel
