#pragma once

#include <array>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "mlxcel/backend/cpu/arena.h"
#include "mlxcel/backend/cpu/cpu_backend.h"
#include "mlxcel/backend/meter.h"

namespace mlxcel::backend::cpu {

/// What CpuBackend would hold. Its operations make the tensors that the real
/// ones make, in the same order, in an arena without memory, and note the
/// largest scratch of each kind.
class CpuMeter : public Meter {
 public:
  CpuMeter(const CpuOptions& options, int threads)
      : options_(options), threads_(threads), arena_(true) {}

  MemoryUse use() const override;
  /// The part of use().steps that is values; the rest is scratch.
  int64_t arena_bytes() const {
    return arena_.held_bytes();
  }

  std::string name() const override {
    return "cpu";
  }
  std::string describe() const override {
    return "cpu: measured, not run";
  }
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
  Resident materialize() override {
    return {};
  }
  /// Its blocks are counted and have no memory.
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

  /// Nothing was computed: all three throw Error(internal).
  void export_rows(const Tensor& x, std::span<float> out) override;
  Tensor import_rows(std::span<const float> values, int64_t rows, int64_t cols)
      override;
  void argmax(const Tensor& x, std::span<int32_t> out) override;

 private:
  void keep(const Weight& weight);
  void keep(const LinearWeight& weight);
  Tensor make_like(const Tensor& x, int64_t cols);
  void multiply(
      const std::vector<WeightFormat>& formats, int64_t rows, int64_t cols
  );

  CpuOptions options_;
  int threads_;
  Arena arena_;
  const Batch* batch_ = nullptr;
  std::unordered_set<const WeightSource*> sources_;
  uint64_t weights_ = 0;
  uint64_t prepared_ = 0;
  // Scratch that only grows; int8 activations take turns with slots.
  std::array<int64_t, 8> slots_{};
  size_t next_slot_ = 0;
  int64_t padded_ = 0;
  int64_t thread_scratch_ = 0;
  int64_t rotations_ = 0;
};

}  // namespace mlxcel::backend::cpu
