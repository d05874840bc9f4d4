#include "mlxcel/backend/weight_group.h"

namespace mlxcel::backend {

int64_t WeightGroup::rows() const {
  int64_t rows = 0;
  for (const LinearWeight& part : parts) {
    rows += part.rows;
  }
  return rows;
}

int64_t WeightGroup::cols() const {
  return parts.empty() ? 0 : parts.front().cols;
}

std::vector<const Weight*> planes_of(const LinearWeight& weight) {
  std::vector<const Weight*> planes = {&weight.codes};
  for (const auto* plane : {&weight.scales, &weight.biases, &weight.bias}) {
    if (*plane) {
      planes.push_back(&**plane);
    }
  }
  return planes;
}

}  // namespace mlxcel::backend
