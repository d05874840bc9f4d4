#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mlxcel/backend/backend.h"
#include "mlxcel/backend/cpu/kv_pool.h"
#include "mlxcel/backend/cpu/matmul.h"

namespace mlxcel::backend::cpu {

/// Consecutive rows of one role.
struct RoleRun {
  int64_t first = 0;
  int64_t count = 0;
  Role role = Role::prompt;
};

/// Which kernels the rows of a role go through.
inline Family family_of(Role role) {
  return role == Role::prompt ? Family::prefill : Family::decode;
}

/// Angles of one rotary embedding, shared by the layers that use it.
class RopeTable {
 public:
  explicit RopeTable(const RopeSpec& spec) : spec_(spec) {}

  const RopeSpec& spec() const {
    return spec_;
  }
  /// cos [dims / 2], then sin, times the amplitude, for each position. The
  /// angle is the float32 product that MLX takes (mlx/fast.cpp, rope).
  /// Computed once per step.
  const float* rows(int64_t step, std::span<const int32_t> positions);

 private:
  RopeSpec spec_;
  int64_t step_ = -1;
  std::vector<float> values_;
};

/// What a step is made of; kept between steps so that its memory is reused.
class StepPlan {
 public:
  /// Throws Error(internal) if segments and blocks don't fit the batch and
  /// the pool.
  void begin(const Batch& batch, KvPool& pool);
  void end() {
    batch_ = nullptr;
  }

  bool active() const {
    return batch_ != nullptr;
  }
  const Batch& batch() const {
    return *batch_;
  }
  KvPool& pool() const {
    return *pool_;
  }
  int64_t step() const {
    return step_;
  }
  int64_t rows() const {
    return batch_->rows();
  }
  int64_t selected() const {
    return static_cast<int64_t>(batch_->logit_rows.size());
  }
  /// Of all rows, or of the logit rows.
  std::span<const RoleRun> runs(bool selected) const {
    return selected ? selected_runs_ : runs_;
  }
  /// The segment of a row.
  const Segment& segment(int64_t row) const {
    return batch_
        ->segments[static_cast<size_t>(segment_of_[static_cast<size_t>(row)])];
  }
  /// Tokens of its sequence that precede the row.
  int64_t past(int64_t row) const {
    const Segment& owner = segment(row);
    return owner.position + row - owner.first;
  }

 private:
  static void extend(std::vector<RoleRun>& runs, int64_t row, Role role);

  const Batch* batch_ = nullptr;
  KvPool* pool_ = nullptr;
  int64_t step_ = 0;
  std::vector<int32_t> segment_of_;  // [T]
  std::vector<RoleRun> runs_;
  std::vector<RoleRun> selected_runs_;
};

}  // namespace mlxcel::backend::cpu
