#pragma once

#include <memory>
#include <vector>

#include "mlxcel/backend/backend.h"
#include "mlxcel/backend/cpu/matmul.h"

namespace mlxcel::backend::cpu {

/// A layer's experts as views of their planes.
class CpuExperts : public PreparedExperts {
 public:
  struct Expert {
    std::shared_ptr<const CpuLinear> gate_up;
    std::shared_ptr<const CpuLinear> down;
  };
  int64_t layer = 0;
  std::vector<Expert> slots;
  std::shared_ptr<ExpertBank> bank;
};

/// Experts and weights of each row, the largest weight first.
class CpuRouting : public Routing {
 public:
  std::vector<int32_t> ids;    // [rows, chosen]
  std::vector<float> weights;  // [rows, chosen]
};

/// Softmax and choice of one row of scores [spec.experts].
void route_row(
    const float* scores, const RouterSpec& spec, int32_t* ids, float* weights
);

/// The rows that each expert gets, of rows [first, first + count).
class ExpertPlan {
 public:
  /// Sorts the choices by expert, each expert's in the order of rows.
  void sort(
      const CpuRouting& routing, int64_t experts, int64_t first, int64_t count
  );

  struct Part {
    int32_t expert;
    int64_t begin;  // into choices()
    int64_t count;
  };
  const std::vector<Part>& parts() const {
    return parts_;
  }
  /// Positions row * chosen + place, by expert.
  const std::vector<int64_t>& choices() const {
    return choices_;
  }
  int64_t largest() const {
    return largest_;
  }

 private:
  std::vector<int64_t> starts_;
  std::vector<int64_t> choices_;
  std::vector<Part> parts_;
  int64_t largest_ = 0;
};

}  // namespace mlxcel::backend::cpu
