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

}  // namespace mlxcel::backend
