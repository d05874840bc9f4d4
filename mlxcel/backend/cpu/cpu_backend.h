#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "mlxcel/backend/backend.h"
#include "mlxcel/backend/cpu/arena.h"
#include "mlxcel/backend/cpu/attention.h"
#include "mlxcel/backend/cpu/experts.h"
#include "mlxcel/backend/cpu/isa.h"
#include "mlxcel/backend/cpu/kernels.h"
#include "mlxcel/backend/cpu/matmul.h"
#include "mlxcel/backend/cpu/step_plan.h"
#include "mlxcel/core/thread_pool.h"
#include "mlxcel/weights/weight_files.h"

namespace mlxcel::backend::cpu {

struct CpuOptions {
  bool exact = false;
  Isa isa = Isa::generic;
  ActivationMode activations = ActivationMode::int8;
  /// Keys and values in IEEE half precision, saturating, instead of float32.
  bool half_state = true;
};

/// The strongest instruction set; exact: float32 throughout, otherwise what
/// MLXCEL_CPU_ACT (int8, f32) says. Throws Error(usage) for another value.
CpuOptions default_options(const Numerics& numerics);

/// Runs every operation at once on float32 rows, weights in place in the
/// mapped file. A step's rows go through the kernels of their role.
class CpuBackend : public Backend {
 public:
  CpuBackend(const CpuOptions& options, ThreadPool& pool);
  ~CpuBackend() override;

  std::string name() const override {
    return "cpu";
  }
  std::string describe() const override;
  Numerics numerics() const override {
    return {options_.exact};
  }
  bool supports(Operation operation, const WeightFormat& format) const override;

  std::shared_ptr<const PreparedLinear> prepare_linear(const WeightGroup& group
  ) override;
  std::shared_ptr<const EmbeddingSource> prepare_embedding(
      const LinearWeight& table
  ) override;
  std::shared_ptr<const PreparedVector> prepare_vector(
      const Weight& weight, float offset
  ) override;
  std::shared_ptr<const PreparedAttention> prepare_attention(
      const AttentionSpec& spec
  ) override;
  std::shared_ptr<const PreparedExperts> prepare_experts(
      const ExpertGroup& group
  ) override;
  Resident materialize() override;

  std::unique_ptr<StatePool> make_pool(
      const StateLayout& layout, int64_t blocks
  ) override;

  void begin(const Batch& batch, StatePool& pool) override;
  void end() override;

  Tensor embed(const EmbeddingSource& table, float scale) override;
  Tensor linear(
      const PreparedLinear& weight, const Tensor& x, const Epilogue& epilogue
  ) override;
  Tensor norm(
      NormKind kind,
      const Tensor& x,
      const PreparedVector* weight,
      const PreparedVector* bias,
      float epsilon
  ) override;
  Tensor attend(const PreparedAttention& layer, const Tensor& qkv) override;
  std::shared_ptr<const Routing> route(
      const Tensor& scores, const RouterSpec& spec
  ) override;
  Tensor experts(
      const PreparedExperts& group,
      const Routing& routing,
      const Tensor& x,
      Activation activation,
      const Tensor& residual
  ) override;
  Tensor add(const Tensor& a, const Tensor& b) override;
  Tensor multiply(const Tensor& x, float factor) override;
  Tensor reduce(const Tensor& x) override {
    return x;
  }
  Tensor select_logit_rows(const Tensor& hidden) override;
  Tensor logits(
      const PreparedLinear& head, const Tensor& x, float scale, float softcap
  ) override;

  void export_rows(const Tensor& x, std::span<float> out) override;
  Tensor import_rows(std::span<const float> values, int64_t rows, int64_t cols)
      override;
  void argmax(const Tensor& x, std::span<int32_t> out) override;

  /// Bytes of values that are kept for the next steps.
  int64_t arena_bytes() const {
    return arena_.held_bytes();
  }

 private:
  void keep(const LinearWeight& weight);
  void keep(const Weight& weight);
  void need_step(const char* operation) const;
  Tensor make_like(const Tensor& x, int64_t cols);
  void run_experts(
      const CpuExperts& group,
      const CpuRouting& routing,
      const RoleRun& run,
      const CpuTensor& x,
      Activation activation,
      const CpuTensor& residual,
      CpuTensor& y
  );

  /// Calls f(row) for each row, on several threads if it is worth it.
  template <typename F>
  void for_rows(int64_t rows, int64_t cols, F&& f) {
    // Values below which one thread is done before a second has started, and
    // those that one piece has.
    constexpr int64_t kParallelValues = 1 << 15;
    constexpr int64_t kPieceValues = 1 << 13;
    auto piece = [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        f(row);
      }
    };
    if (rows * cols < kParallelValues) {
      piece(0, rows);
    } else {
      pool_.parallel_for(
          rows, std::max<int64_t>(1, kPieceValues / cols), piece
      );
    }
  }

  CpuOptions options_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  Arena arena_;
  StepPlan plan_;
  AttentionRunner attention_;
  MatmulScratch scratch_;
  ExpertPlan expert_plan_;
  std::vector<std::shared_ptr<RopeTable>> ropes_;
  WeightFiles files_;
  // What was prepared, each source once; bytes not yet read ahead.
  std::unordered_set<std::shared_ptr<const WeightSource>> kept_;
  std::vector<std::span<const std::byte>> unread_;
};

}  // namespace mlxcel::backend::cpu
