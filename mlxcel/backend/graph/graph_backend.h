#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mlx/mlx.h"
#include "mlxcel/backend/backend.h"
#include "mlxcel/backend/graph/linear.h"
#include "mlxcel/backend/graph/state_pool.h"
#include "mlxcel/weights/weight_files.h"

namespace mlxcel::backend::graph {

namespace mx = mlx::core;

/// Turns the exception in flight into an Error that starts with `what`; only
/// from within a catch clause. Errors of ours pass as they are.
[[noreturn]] void rethrow(const std::string& what);

/// A handle on an array [rows, cols] of the graph.
Tensor wrap(mx::array value);
const mx::array& array_of(const Tensor& tensor);

class GraphVector final : public PreparedVector {
 public:
  explicit GraphVector(mx::array value);
  /// The vector in the activations' type.
  const mx::array& as(mx::Dtype dtype, mx::Stream stream) const;

 private:
  mx::array value_;  // float32
  mutable mx::array cast_;
};

/// Every operation in plain MLX operations, on one stream of a device. Values
/// are built lazily and evaluated by end(), export_rows() and argmax().
class GraphBackend final : public Backend {
 public:
  GraphBackend(std::string device, mx::Stream stream, Numerics numerics);

  std::string name() const override;
  std::string describe() const override;
  Numerics numerics() const override;
  DeviceFacts device() const override;
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
  Tensor reduce(const Tensor& x) override;
  Tensor select_logit_rows(const Tensor& hidden) override;
  Tensor logits(
      const PreparedLinear& head, const Tensor& x, float scale, float softcap
  ) override;

  void export_rows(const Tensor& x, std::span<float> out) override;
  Tensor import_rows(std::span<const float> values, int64_t rows, int64_t cols)
      override;
  void argmax(const Tensor& x, std::span<int32_t> out) override;

 private:
  /// The step's batch. Throws Error(internal) outside begin() and end().
  const Batch& batch() const;
  /// Evaluates now. On failure, that of a weight file included, the state of
  /// the step's sequences is dropped and the step is over.
  void evaluate(std::vector<mx::array> arrays, const std::string& what);
  /// Remembers the type that activations take from a matrix of type `dtype`.
  void note_activation(mx::Dtype dtype);
  void count(const LinearWeight& weight);
  /// The planes as arrays, in float32 where that is what products take.
  Planes prepare_planes(const LinearWeight& weight);
  void finish_copies();
  mx::Dtype activation() const;
  /// Whether quantised products are computed in float32 and then rounded.
  bool wide_products() const;
  mx::array scaled(const mx::array& x, float factor) const;

  std::string device_;
  mx::Stream stream_;
  Numerics numerics_;
  std::optional<mx::Dtype> activation_;

  struct Pending {
    std::string name;
    mx::array value;
  };
  void keep(const LinearWeight& weight);
  WeightFiles files_;
  // Prepared since the last materialize().
  std::vector<Pending> pending_;
  Resident resident_;

  /// Drops the state of the step's sequences and ends the step.
  void drop_step() noexcept;
  const Batch* batch_ = nullptr;
  bool lost_ = false;  // an append to the state failed half-way
  GraphStatePool* pool_ = nullptr;
  std::optional<mx::array> positions_;   // [T] int32
  std::optional<mx::array> logit_rows_;  // [R] int32
};

}  // namespace mlxcel::backend::graph
