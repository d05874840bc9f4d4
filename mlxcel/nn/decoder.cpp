#include "mlxcel/nn/decoder.h"

#include "mlxcel/nn/attention.h"
#include "mlxcel/nn/binder.h"
#include "mlxcel/nn/mlp.h"
#include "mlxcel/nn/moe.h"

namespace mlxcel::nn {

namespace {

// One block: norm, mixer, residual; norm, feed-forward, residual.
using Mixer = std::variant<NoMixer, Attention>;
using Ffn = std::variant<NoFfn, Mlp, Moe>;

Mixer bind_mixer(
    const LayerSpec& spec,
    int64_t width,
    int64_t index,
    const TensorNames& names,
    const Binder& binder
) {
  if (const auto* attention = std::get_if<AttentionSpec>(&spec.mixer)) {
    return Attention(*attention, width, index, names, binder);
  }
  return NoMixer{};
}

Ffn bind_ffn(
    const LayerSpec& spec,
    int64_t width,
    int64_t index,
    const TensorNames& names,
    const Binder& binder
) {
  if (const auto* mlp = std::get_if<MlpSpec>(&spec.ffn)) {
    return Mlp(*mlp, width, index, names, binder);
  }
  if (const auto* moe = std::get_if<MoeSpec>(&spec.ffn)) {
    return Moe(*moe, width, index, names, binder);
  }
  return NoFfn{};
}

}  // namespace

class Layer {
 public:
  Layer(
      const LayerSpec& spec,
      int64_t width,
      int64_t index,
      const TensorNames& names,
      const Binder& binder
  )
      : mixer_norm_(binder.norm(
            layer_path(names, index, names.mixer_norm), spec.norm, width
        )),
        mixer_(bind_mixer(spec, width, index, names, binder)),
        ffn_norm_(binder.norm(
            layer_path(names, index, names.ffn_norm), spec.norm, width
        )),
        ffn_(bind_ffn(spec, width, index, names, binder)) {}

  /// [T, C] -> [T, C]
  backend::Tensor forward(backend::Backend& backend, const backend::Tensor& x)
      const {
    if (const auto* attention = std::get_if<Attention>(&mixer_)) {
      backend::Tensor mixed =
          attention->attend(backend, mixer_norm_(backend, x));
      return feed_forward(backend, attention->project(backend, mixed, x));
    }
    return feed_forward(backend, x);
  }

  /// The last layer: every token extends the state, but only the logit rows
  /// are needed behind it. [T, C] -> [R, C]
  backend::Tensor forward_logit_rows(
      backend::Backend& backend, const backend::Tensor& x
  ) const {
    const auto* attention = std::get_if<Attention>(&mixer_);
    backend::Tensor mixed;
    if (attention != nullptr) {
      mixed = backend.select_logit_rows(
          attention->attend(backend, mixer_norm_(backend, x))
      );
    }
    backend::Tensor rows = backend.select_logit_rows(x);
    if (rows.rows() == 0) {
      return rows;
    }
    if (attention != nullptr) {
      rows = attention->project(backend, mixed, rows);
    }
    return feed_forward(backend, rows);
  }

 private:
  backend::Tensor feed_forward(
      backend::Backend& backend, const backend::Tensor& x
  ) const {
    if (const auto* mlp = std::get_if<Mlp>(&ffn_)) {
      return mlp->forward(backend, ffn_norm_(backend, x), x);
    }
    if (const auto* moe = std::get_if<Moe>(&ffn_)) {
      return moe->forward(backend, ffn_norm_(backend, x), x);
    }
    return x;
  }

  BoundNorm mixer_norm_;
  Mixer mixer_;
  BoundNorm ffn_norm_;
  Ffn ffn_;
};

Decoder::Decoder(
    const DecoderSpec& spec,
    const TensorNames& names,
    const WeightMap& weights,
    const QuantConfig& quantization,
    std::shared_ptr<backend::Backend> backend
)
    : spec_(spec), backend_(std::move(backend)) {
  Binder binder(weights, quantization, *backend_);
  int64_t vocabulary = spec_.embedding.vocabulary;
  int64_t width = spec_.embedding.width;
  LinearWeight table = binder.matrix(names.embedding, vocabulary, width);
  embedding_ = backend_->prepare_embedding(table);
  for (size_t i = 0; i < spec_.layers.size(); ++i) {
    layers_.push_back(std::make_unique<Layer>(
        spec_.layers[i], width, static_cast<int64_t>(i), names, binder
    ));
  }
  BoundNorm norm = binder.norm(names.final_norm, spec_.final_norm, width);
  final_norm_ = norm.weight;
  final_norm_bias_ = norm.bias;
  head_ = spec_.head.tied ? backend_->prepare_linear({{table}})
                          : binder.linear(names.head, vocabulary, width);
}

Decoder::~Decoder() = default;

backend::StateLayout Decoder::state_layout() const {
  backend::StateLayout layout;
  for (const LayerSpec& layer : spec_.layers) {
    backend::LayerState state;
    if (const auto* attention = std::get_if<AttentionSpec>(&layer.mixer)) {
      state.kind = backend::LayerState::Kind::attention;
      state.kv_heads = attention->kv_heads;
      state.key_dim = attention->head_dim;
      state.value_dim = attention->head_dim;
    }
    layout.layers.push_back(state);
  }
  return layout;
}

backend::Tensor Decoder::forward() const {
  backend::Tensor x = backend_->embed(*embedding_, spec_.embedding.scale);
  for (size_t i = 0; i + 1 < layers_.size(); ++i) {
    x = layers_[i]->forward(*backend_, x);
  }
  x = layers_.back()->forward_logit_rows(*backend_, x);
  if (x.rows() == 0) {
    return x;
  }
  x = backend_->norm(
      spec_.final_norm.kind,
      x,
      final_norm_.get(),
      final_norm_bias_.get(),
      spec_.final_norm.epsilon
  );
  return backend_->logits(
      *head_, x, spec_.head.logit_scale, spec_.head.softcap
  );
}

}  // namespace mlxcel::nn
