#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mlxcel/weights/expert_stack.h"
#include "mlxcel/weights/quantization.h"

namespace mlxcel::backend {

/// Matrices that share their input and are multiplied in one go: q, k, v or
/// gate, up. Parts keep their own format (bit widths may differ), nothing is
/// concatenated in memory, and an adapter can attach to one part. The output
/// row is that of the parts one after another.
struct WeightGroup {
  std::vector<LinearWeight> parts;

  int64_t rows() const;  // output features, all parts together
  int64_t cols() const;  // input features
};

/// The planes that the matrix has, its layer bias among them.
std::vector<const Weight*> planes_of(const LinearWeight& weight);

/// A group as a backend wants it: on cpu views of the mapped file, on graph
/// MLX arrays, on a GPU uploaded planes. Keeps the sources alive.
class PreparedLinear {
 public:
  virtual ~PreparedLinear() = default;
  int64_t rows = 0;
  int64_t cols = 0;
};

/// The gated feed-forward parts of a layer's experts.
struct ExpertGroup {
  int64_t layer = 0;
  ExpertStack gate;
  ExpertStack up;
  ExpertStack down;
};

/// A layer's experts as a backend wants them.
class PreparedExperts {
 public:
  virtual ~PreparedExperts() = default;
  int64_t experts = 0;
  int64_t inner = 0;  // rows of gate and of up
  int64_t width = 0;  // of the input and of the output
};

/// A float32 vector on the backend: a norm's weight, a table of frequencies.
class PreparedVector {
 public:
  virtual ~PreparedVector() = default;
  int64_t size = 0;
};

/// Where embedding rows come from. Resident: the prepared matrix itself; a
/// table on disk is another implementation.
class EmbeddingSource {
 public:
  virtual ~EmbeddingSource() = default;
  virtual int64_t vocabulary() const = 0;
  virtual int64_t width() const = 0;
  /// Rows `ids` as float32 [ids, width] into `out`.
  virtual void gather(std::span<const int32_t> ids, float* out) const = 0;
  /// Tokens that the next step is likely to ask for.
  virtual void prefetch(std::span<const int32_t> ids) const {
    (void)ids;
  }
};

/// Which experts of a layer are resident and where. Resident bank: slot = id.
class ExpertBank {
 public:
  virtual ~ExpertBank() = default;
  /// Makes the experts available and gives their slots, in the order of `ids`
  /// (without repeats). A slot keeps its address until the step's fence.
  virtual std::vector<int32_t> acquire(
      int64_t layer, std::span<const int32_t> ids
  ) = 0;
};

class ResidentExperts : public ExpertBank {
 public:
  std::vector<int32_t> acquire(int64_t, std::span<const int32_t> ids) override {
    return {ids.begin(), ids.end()};
  }
};

}  // namespace mlxcel::backend
