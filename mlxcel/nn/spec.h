#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "mlxcel/backend/backend.h"

/// The description of a text model as data: what a family file returns and
/// what nn/decoder.h runs.
namespace mlxcel::nn {

struct NormSpec {
  backend::NormKind kind = backend::NormKind::rms;
  float epsilon = 1e-5F;
  /// Added to the stored weight: 1 for families that store w - 1.
  float weight_offset = 0.0F;
};

/// Softmax attention with a key-value cache.
struct AttentionSpec {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  float scale = 1.0F;
  int64_t window = 0;  // keys a query sees; 0: all
  std::optional<backend::RopeSpec> rope;
  bool qkv_bias = false;
  bool output_bias = false;
  std::optional<NormSpec> head_norm;  // of q and k, over head_dim
};

/// down(f(gate(x)) * up(x)).
struct MlpSpec {
  int64_t width = 0;
  backend::Activation activation = backend::Activation::silu;
  bool bias = false;
};

/// The sum of some of many gated parts, chosen for each token by the softmax
/// of a router's scores.
struct MoeSpec {
  int64_t experts = 0;
  int64_t chosen = 0;      // of each token
  int64_t width = 0;       // of one expert
  bool normalize = false;  // weights of a token sum to 1
  backend::Activation activation = backend::Activation::silu;
};

struct NoMixer {};
struct NoFfn {};

struct LayerSpec {
  std::variant<AttentionSpec, NoMixer> mixer;
  std::variant<MlpSpec, MoeSpec, NoFfn> ffn;
  NormSpec norm;  // before the mixer and before the feed-forward part
};

struct EmbeddingSpec {
  int64_t vocabulary = 0;
  int64_t width = 0;  // the model's hidden size
  float scale = 1.0F;
};

struct HeadSpec {
  /// The head is the embedding table, even if a head is stored beside it.
  bool tied = false;
  float logit_scale = 1.0F;
  float softcap = 0.0F;  // 0: none
};

struct DecoderSpec {
  EmbeddingSpec embedding;
  std::vector<LayerSpec> layers;
  NormSpec final_norm;
  HeadSpec head;
};

}  // namespace mlxcel::nn
