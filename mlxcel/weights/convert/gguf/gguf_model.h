#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "mlxcel/weights/convert/gguf/gguf.h"

namespace mlxcel::convert {

/// `rope_scaling` of config.json. Fields that its type doesn't have are empty.
struct RopeScaling {
  std::string type;  // linear, yarn or llama3
  double factor;
  std::optional<int64_t> original_context;
  std::optional<double> low_freq_factor;
  std::optional<double> high_freq_factor;
  std::optional<double> beta_fast;
  std::optional<double> beta_slow;
};

/// What config.json says about the model.
struct ModelParameters {
  std::string model_type;
  std::string class_name;
  std::string activation;
  int64_t layers;
  int64_t hidden_size;
  int64_t intermediate_size;
  int64_t heads;
  int64_t kv_heads;
  int64_t head_dim;
  bool explicit_head_dim;
  double rms_norm_eps;
  double rope_theta;
  std::optional<RopeScaling> rope_scaling;
  int64_t vocab_size;
  int64_t context;
  bool tied;
  bool attention_bias;
  bool mlp_bias;
};

/// Where one tensor of the checkpoint comes from: rows [first_row, first_row +
/// rows) of a GGUF tensor. A vector has rows of one element.
struct TensorPlan {
  const GgufTensor* source;
  std::string name;
  int64_t first_row;
  int64_t rows;
  /// llama.cpp stores the rows of each rotated head interleaved; with heads >
  /// 0 they are put back in halves.
  int64_t heads;
  /// llama.cpp stores Gemma's norms with 1 added; with this it is taken off.
  bool subtract_one;

  int64_t columns() const {
    return source->shape.size() == 1 ? 1 : source->columns();
  }
  /// The row of the source that becomes row `row`.
  int64_t source_row(int64_t row) const;
};

struct ModelPlan {
  ModelParameters parameters;
  std::vector<TensorPlan> tensors;  // in the order of the model
};

/// Architectures llama, qwen2, qwen3 and gemma. Every tensor of the file and
/// every key of the architecture must be accounted for. Throws Error naming
/// the file and the key or tensor that is missing, wrong or not known.
ModelPlan plan_model(const GgufFile& gguf);

/// config.json without `quantization` and `torch_dtype`.
nlohmann::ordered_json model_config(const ModelParameters& parameters);

/// The parameters of Llama 3's frequency scaling that give these factors
/// (`rope_freqs.weight`, [head_dim / 2]); empty if they give none.
std::optional<RopeScaling> fit_llama3_scaling(
    const std::vector<float>& factors, double rope_theta
);

}  // namespace mlxcel::convert
