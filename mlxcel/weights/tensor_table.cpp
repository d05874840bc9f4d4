#include "mlxcel/weights/tensor_table.h"

#include <fmt/format.h>

#include <unordered_set>

#include "mlxcel/core/error.h"
#include "mlxcel/core/log.h"
#include "mlxcel/core/text.h"

namespace mlxcel {

namespace {

constexpr size_t kListed = 40;

}  // namespace

TableDifference compare_with_table(
    const TensorTable& table, const WeightMap& weights
) {
  TableDifference difference;
  std::unordered_set<std::string> expected;
  for (const TensorSpec& tensor : table) {
    if (tensor.required && !weights.contains(tensor.name)) {
      difference.missing.push_back(tensor.name);
    }
    constexpr std::string_view kWeight = ".weight";
    if (tensor.role != TensorRole::vector && tensor.name.ends_with(kWeight)) {
      std::string path =
          tensor.name.substr(0, tensor.name.size() - kWeight.size());
      expected.insert(path + ".scales");
      expected.insert(path + ".biases");
      expected.insert(path + ".global_scale");
    }
    expected.insert(tensor.name);
  }
  for (const auto& [name, weight] : weights) {
    if (!expected.contains(name)) {
      difference.unexpected.push_back(name);
    }
  }
  return difference;
}

void check_tensors(const TensorTable& table, const WeightMap& weights) {
  TableDifference difference = compare_with_table(table, weights);
  if (!difference.missing.empty()) {
    fail(
        ErrorCode::not_found,
        fmt::format(
            "[weights] {}: {} of {} tensors are missing: {}",
            weights.origin,
            difference.missing.size(),
            table.size(),
            list_names(difference.missing, kListed)
        )
    );
  }
  if (!difference.unexpected.empty()) {
    std::vector<std::string> unexpected;
    for (const std::string& name : difference.unexpected) {
      unexpected.push_back(quote(name));
    }
    log_warning(fmt::format(
        "[weights] {}: {} tensors are not used: {}",
        weights.origin,
        unexpected.size(),
        list_names(unexpected, kListed)
    ));
  }
}

}  // namespace mlxcel
