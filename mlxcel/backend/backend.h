#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mlxcel/backend/batch.h"
#include "mlxcel/backend/state.h"
#include "mlxcel/backend/tensor.h"
#include "mlxcel/backend/weight_group.h"
#include "mlxcel/core/device_facts.h"

namespace mlxcel::backend {

/// How exactly a backend computes.
struct Numerics {
  /// float32 activations, float32 KV, float32 sums.
  bool exact = false;
};

enum class Activation : uint8_t { silu, gelu, gelu_tanh, relu };
enum class NormKind : uint8_t { rms, layer };

/// Rotary embedding of the first `dims` of each head's `head_dim` values.
struct RopeSpec {
  int64_t dims = 0;
  /// Pairs are (2i, 2i+1) if interleaved, (i, i + dims/2) otherwise.
  bool interleaved = false;
  /// Angle of pair i at position p is p * inverse_frequencies[i]. [dims / 2]
  std::vector<float> inverse_frequencies;
  /// Factor on cos and sin (YaRN).
  float amplitude = 1.0F;
};

/// Normalises each head's query or key before rotation.
struct HeadNorm {
  std::shared_ptr<const PreparedVector> weight;  // [head_dim]
  float epsilon = 1e-6F;
};

/// One attention layer, fixed at load. Input rows are q | k | v:
/// [T, heads*key_dim + kv_heads*key_dim + kv_heads*value_dim].
struct AttentionSpec {
  int64_t layer = 0;  // index into the state layout
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  float scale = 1.0F;
  /// A query at position p sees the keys of (p - window, p]; 0: all.
  int64_t window = 0;
  std::optional<RopeSpec> rope;
  std::optional<HeadNorm> query_norm;
  std::optional<HeadNorm> key_norm;
};

/// An attention layer as the backend wants it (tables of angles and so on).
class PreparedAttention {
 public:
  virtual ~PreparedAttention() = default;
};

/// What happens to a linear's output before it is stored. Layer biases are
/// part of the weights. At most one of activation, gate and residual.
struct Epilogue {
  /// y = f(x)
  std::optional<Activation> activation;
  /// Two parts of equal width g | u become f(g) * u, half as wide.
  std::optional<Activation> gate;
  /// Added to the output. [T, rows]
  const Tensor* residual = nullptr;
  /// Activations are multiplied as they are, not rounded to 8 bits: for scores
  /// by which something is chosen.
  bool precise = false;
};

/// What a backend has made resident.
struct Resident {
  uint64_t bytes = 0;
  int64_t tensors = 0;
};

/// How the scores of a router become experts and their weights: the `chosen`
/// largest of softmax(scores); of equal ones those of the lowest numbers.
struct RouterSpec {
  int64_t experts = 0;
  int64_t chosen = 0;      // of each row
  bool normalize = false;  // the weights of a row are made to sum to 1
};

/// Which experts each row of a step goes to, and with which weights.
class Routing {
 public:
  virtual ~Routing() = default;
  int64_t rows = 0;
  int64_t chosen = 0;
};

/// Operations that a backend may lack for a format.
enum class Operation : uint8_t { linear, embed, norm, attend, logits, experts };

/// The operations that a model is made of, on handles. Calls between begin()
/// and end() make up one step; segments, lengths and block tables are in the
/// plan of the step, not in the calls. Not thread-safe: one executor thread.
///
/// Every operation throws Error(unsupported) naming the tensor if supports()
/// is false for it.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;
  /// "cpu: AVX-512 VNNI, 2 threads".
  virtual std::string describe() const = 0;
  virtual Numerics numerics() const = 0;
  /// Of the device that runs, for load policies.
  virtual DeviceFacts device() const {
    return {};
  }
  virtual bool supports(Operation operation, const WeightFormat& format)
      const = 0;

  // Weights, at load. A group's planes are not copied where the backend can
  // read them in place.
  virtual std::shared_ptr<const PreparedLinear> prepare_linear(
      const WeightGroup& group
  ) = 0;
  virtual std::shared_ptr<const EmbeddingSource> prepare_embedding(
      const LinearWeight& table
  ) = 0;
  /// The weight as float32, plus `offset` (1 for norms that store w - 1).
  virtual std::shared_ptr<const PreparedVector> prepare_vector(
      const Weight& weight, float offset
  ) = 0;
  virtual std::shared_ptr<const PreparedAttention> prepare_attention(
      const AttentionSpec& spec
  ) = 0;
  virtual std::shared_ptr<const PreparedExperts> prepare_experts(
      const ExpertGroup& group
  ) = 0;
  /// Reads ahead or uploads what was prepared since the last call and throws
  /// if that fails: the end of a materialisation scope.
  virtual Resident materialize() = 0;

  virtual std::unique_ptr<StatePool> make_pool(
      const StateLayout& layout, int64_t blocks
  ) = 0;

  // A step.
  /// Fixes the plan of the step. The batch must outlive end().
  virtual void begin(const Batch& batch, StatePool& pool) = 0;
  /// Evaluates what is outstanding and frees the step's plan.
  virtual void end() = 0;

  /// Rows of the table for the step's tokens times `scale`. [T, width]
  virtual Tensor embed(const EmbeddingSource& table, float scale) = 0;
  /// x W^T (+ bias), then the epilogue. [T, rows] (gate: [T, rows / 2])
  virtual Tensor linear(
      const PreparedLinear& weight, const Tensor& x, const Epilogue& epilogue
  ) = 0;
  /// Per row: x / sqrt(mean(x^2) + epsilon) * weight (rms), or centred and
  /// with `bias` (layer). [T, C]
  virtual Tensor norm(
      NormKind kind,
      const Tensor& x,
      const PreparedVector* weight,
      const PreparedVector* bias,
      float epsilon
  ) = 0;
  /// Normalises and rotates q and k, appends k and v to the layer's state and
  /// attends causally, for all segments at once. [T, heads * value_dim]
  virtual Tensor attend(const PreparedAttention& layer, const Tensor& qkv) = 0;
  /// scores [T, experts].
  virtual std::shared_ptr<const Routing> route(
      const Tensor& scores, const RouterSpec& spec
  ) = 0;
  /// Of each row the sum over its experts of weight * down(f(gate(x)) * up(x)),
  /// plus `residual`. [T, C]
  virtual Tensor experts(
      const PreparedExperts& group,
      const Routing& routing,
      const Tensor& x,
      Activation activation,
      const Tensor& residual
  ) = 0;
  virtual Tensor add(const Tensor& a, const Tensor& b) = 0;
  virtual Tensor multiply(const Tensor& x, float factor) = 0;
  /// Sums over ranks; with one rank, x itself.
  virtual Tensor reduce(const Tensor& x) = 0;
  /// The step's logit rows of a hidden state. [R, C]
  virtual Tensor select_logit_rows(const Tensor& hidden) = 0;
  /// softcap * tanh(x / softcap) if softcap > 0, after times `scale`. [R, V]
  virtual Tensor logits(
      const PreparedLinear& head, const Tensor& x, float scale, float softcap
  ) = 0;

  // Across backends and to the host.
  /// Copies [rows, cols] as float32.
  virtual void export_rows(const Tensor& x, std::span<float> out) = 0;
  virtual Tensor import_rows(
      std::span<const float> values, int64_t rows, int64_t cols
  ) = 0;
  /// Index of the largest value of each row; the lowest index on a tie.
  virtual void argmax(const Tensor& x, std::span<int32_t> out) = 0;
};

}  // namespace mlxcel::backend
