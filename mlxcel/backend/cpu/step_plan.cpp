#include "mlxcel/backend/cpu/step_plan.h"

#include <fmt/format.h>

#include <cmath>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"

namespace mlxcel::backend::cpu {

const float* RopeTable::rows(int64_t step, std::span<const int32_t> positions) {
  if (step_ == step) {
    return values_.data();
  }
  size_t half = spec_.inverse_frequencies.size();
  values_.resize(positions.size() * 2 * half);
  float* row = values_.data();
  for (int32_t position : positions) {
    for (size_t i = 0; i < half; ++i) {
      float angle = static_cast<float>(position) * spec_.inverse_frequencies[i];
      auto wide = static_cast<double>(angle);
      row[i] = static_cast<float>(std::cos(wide)) * spec_.amplitude;
      row[half + i] = static_cast<float>(std::sin(wide)) * spec_.amplitude;
    }
    row += 2 * half;
  }
  step_ = step;
  return values_.data();
}

namespace {

[[noreturn]] void wrong(const std::string& what) {
  fail(ErrorCode::internal, "[batch] " + what);
}

void check_blocks(const Segment& segment, int64_t blocks) {
  int64_t tokens = segment.position + segment.count;
  int64_t needed = ceil_div(tokens, kBlockTokens);
  if (static_cast<int64_t>(segment.blocks.size()) < needed) {
    wrong(fmt::format(
        "sequence {}: {} blocks for {} tokens",
        segment.sequence,
        segment.blocks.size(),
        tokens
    ));
  }
  for (int64_t i = 0; i < needed; ++i) {
    int32_t block = segment.blocks[static_cast<size_t>(i)];
    if (block < 0 || block >= blocks) {
      wrong(fmt::format(
          "sequence {}: block {} of {}", segment.sequence, block, blocks
      ));
    }
  }
}

void check_batch(const Batch& batch, const KvPool& pool) {
  int64_t rows = batch.rows();
  if (rows == 0) {
    wrong("a step without tokens");
  }
  if (static_cast<int64_t>(batch.positions.size()) != rows) {
    wrong(fmt::format("{} positions, {} tokens", batch.positions.size(), rows));
  }
  int64_t next = 0;
  for (const Segment& segment : batch.segments) {
    if (segment.first != next || segment.count <= 0 || segment.position < 0 ||
        segment.count > rows - next) {
      wrong(fmt::format("segments don't cover the rows: row {}", next));
    }
    next += segment.count;
    if (pool.block_bytes() > 0) {
      check_blocks(segment, pool.blocks());
    }
  }
  if (next != rows) {
    wrong(fmt::format("segments cover {} rows of {}", next, rows));
  }
  for (int32_t row : batch.logit_rows) {
    if (row < 0 || row >= rows) {
      wrong(fmt::format("logit row {} of {}", row, rows));
    }
  }
}

}  // namespace

void StepPlan::extend(std::vector<RoleRun>& runs, int64_t row, Role role) {
  if (runs.empty() || runs.back().role != role) {
    runs.push_back({row, 0, role});
  }
  ++runs.back().count;
}

void StepPlan::begin(const Batch& batch, KvPool& pool) {
  batch_ = nullptr;
  check_batch(batch, pool);
  runs_.clear();
  selected_runs_.clear();
  segment_of_.clear();
  for (size_t i = 0; i < batch.segments.size(); ++i) {
    const Segment& segment = batch.segments[i];
    for (int64_t row = 0; row < segment.count; ++row) {
      segment_of_.push_back(static_cast<int32_t>(i));
      extend(runs_, segment.first + row, segment.role);
    }
  }
  batch_ = &batch;
  pool_ = &pool;
  ++step_;
  for (size_t i = 0; i < batch.logit_rows.size(); ++i) {
    Role role = segment(batch.logit_rows[i]).role;
    extend(selected_runs_, static_cast<int64_t>(i), role);
  }
}

}  // namespace mlxcel::backend::cpu
