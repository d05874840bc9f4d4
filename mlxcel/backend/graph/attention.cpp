#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/backend/graph/graph_backend.h"
#include "mlxcel/backend/graph/planes.h"
#include "mlxcel/core/error.h"

namespace mlxcel::backend::graph {

namespace {

class GraphAttention final : public PreparedAttention {
 public:
  std::string name;
  AttentionSpec spec;
  /// What MLX calls frequencies: one over the angle per position. [dims / 2]
  std::optional<mx::array> periods;
  /// The rope's amplitude on the rotated dims, 1 on the rest. [key_dim]
  std::shared_ptr<GraphVector> amplitude;
};

void check(const AttentionSpec& spec, const std::string& name) {
  auto refuse = [&](const std::string& message) {
    fail(ErrorCode::unsupported, fmt::format("{}: {}", name, message));
  };
  if (spec.heads <= 0 || spec.kv_heads <= 0 || spec.key_dim <= 0 ||
      spec.value_dim <= 0 || spec.heads % spec.kv_heads != 0) {
    refuse(fmt::format(
        "{} heads of {} on {} heads of {} can't attend",
        spec.heads,
        spec.key_dim,
        spec.kv_heads,
        spec.value_dim
    ));
  }
  if (spec.rope) {
    const RopeSpec& rope = *spec.rope;
    auto pairs = static_cast<int64_t>(rope.inverse_frequencies.size());
    if (rope.dims <= 0 || rope.dims > spec.key_dim || rope.dims % 2 != 0 ||
        pairs != rope.dims / 2) {
      refuse(fmt::format(
          "rope over {} of {} dimensions with {} frequencies",
          rope.dims,
          spec.key_dim,
          pairs
      ));
    }
  }
}

// `count` heads of `dim` from column `first`. [T, count, dim]
mx::array take_heads(
    const mx::array& qkv, int first, int count, int dim, mx::Stream s
) {
  int rows = qkv.shape(0);
  mx::array columns =
      mx::slice(qkv, {0, first}, {rows, first + count * dim}, s);
  return mx::reshape(columns, {rows, count, dim}, s);
}

mx::array normalise(
    const mx::array& x, const std::optional<HeadNorm>& norm, mx::Stream s
) {
  if (!norm) {
    return x;
  }
  const auto& weight = dynamic_cast<const GraphVector&>(*norm->weight);
  return mx::fast::rms_norm(x, weight.as(x.dtype(), s), norm->epsilon, s);
}

// Each token is a batch entry of its own, so that any positions may follow
// one another.
mx::array rotate(
    const GraphAttention& layer,
    const mx::array& x,
    const mx::array& positions,
    mx::Stream s
) {
  if (!layer.spec.rope) {
    return x;
  }
  const RopeSpec& rope = *layer.spec.rope;
  mx::array in = x;
  if (layer.amplitude) {
    in = mx::multiply(in, layer.amplitude->as(x.dtype(), s), s);
  }
  mx::array out = mx::fast::rope(
      mx::expand_dims(in, 2, s),
      static_cast<int>(rope.dims),
      rope.interleaved,
      std::nullopt,
      1.0F,
      positions,
      layer.periods,
      s
  );
  return mx::squeeze(out, 2, s);
}

// Rows [first, first + count) of [T, H, D] as [1, H, count, D].
mx::array segment_heads(const mx::array& x, const Segment& seg, mx::Stream s) {
  int first = static_cast<int>(seg.first);
  int last = first + static_cast<int>(seg.count);
  mx::array rows =
      mx::slice(x, {first, 0, 0}, {last, x.shape(1), x.shape(2)}, s);
  return mx::expand_dims(mx::transpose(rows, {1, 0, 2}, s), 0, s);
}

// A query at q sees the keys of (q - window, q]; queries begin at `position`,
// keys at `start`. [count, keys]
mx::array window_mask(
    const Segment& seg, int64_t start, int64_t window, mx::Stream s
) {
  int first = static_cast<int>(seg.position);
  int end = first + static_cast<int>(seg.count);
  mx::array queries = mx::expand_dims(mx::arange(first, end, s), 1, s);
  mx::array keys = mx::arange(static_cast<int>(start), end, s);
  mx::array lowest =
      mx::subtract(queries, mx::array(static_cast<int>(window), mx::int32), s);
  return mx::logical_and(
      mx::greater_equal(queries, keys, s), mx::greater(keys, lowest, s), s
  );
}

// Attention of one segment over everything its sequence holds. q, keys and
// values [1, H, tokens, D]; returns [count, heads * value_dim].
mx::array attend_segment(
    const AttentionSpec& spec,
    const Segment& seg,
    const mx::array& q,
    mx::array keys,
    mx::array values,
    mx::Stream s
) {
  int64_t held = seg.position + seg.count;
  std::string mode = seg.count > 1 ? "causal" : "";
  std::optional<mx::array> mask;
  if (spec.window > 0 && held > spec.window) {
    int64_t start = std::max<int64_t>(0, seg.position + 1 - spec.window);
    auto from = [&](const mx::array& x) {
      mx::Shape first{0, 0, static_cast<int>(start), 0};
      return mx::slice(x, first, x.shape(), s);
    };
    keys = from(keys);
    values = from(values);
    if (seg.count > 1) {
      mode = "array";
      mask = window_mask(seg, start, spec.window, s);
    }
  }
  mx::array o = mx::fast::scaled_dot_product_attention(
      q, keys, values, spec.scale, mode, mask, {}, false, s
  );
  o = mx::transpose(mx::squeeze(o, 0, s), {1, 0, 2}, s);
  return mx::reshape(
      o,
      {static_cast<int>(seg.count),
       static_cast<int>(spec.heads * spec.value_dim)},
      s
  );
}

}  // namespace

std::shared_ptr<const PreparedAttention> GraphBackend::prepare_attention(
    const AttentionSpec& spec
) {
  auto layer = std::make_shared<GraphAttention>();
  layer->name = fmt::format("[graph] attention of layer {}", spec.layer);
  layer->spec = spec;
  check(spec, layer->name);
  if (spec.rope) {
    std::vector<float> periods;
    for (float frequency : spec.rope->inverse_frequencies) {
      periods.push_back(static_cast<float>(1.0 / frequency));
    }
    layer->periods = mx::array(
        periods.data(), {static_cast<int>(periods.size())}, mx::float32
    );
    if (spec.rope->amplitude != 1.0F) {
      std::vector<float> factors(spec.key_dim, 1.0F);
      std::fill_n(factors.begin(), spec.rope->dims, spec.rope->amplitude);
      layer->amplitude = std::make_shared<GraphVector>(mx::array(
          factors.data(), {dimension(spec.key_dim, layer->name)}, mx::float32
      ));
    }
  }
  return layer;
}

Tensor GraphBackend::attend(
    const PreparedAttention& prepared, const Tensor& x
) {
  const auto& layer = dynamic_cast<const GraphAttention&>(prepared);
  const AttentionSpec& spec = layer.spec;
  const Batch& step = batch();
  int64_t width = spec.heads * spec.key_dim +
                  spec.kv_heads * (spec.key_dim + spec.value_dim);
  if (x.cols() != width || x.rows() != step.rows()) {
    fail(
        ErrorCode::internal,
        fmt::format(
            "{}: expected [{}, {}], got [{}, {}]",
            layer.name,
            step.rows(),
            width,
            x.rows(),
            x.cols()
        )
    );
  }
  try {
    const mx::array& qkv = array_of(x);
    int heads = static_cast<int>(spec.heads);
    int kv_heads = static_cast<int>(spec.kv_heads);
    int key_dim = static_cast<int>(spec.key_dim);
    int value_dim = static_cast<int>(spec.value_dim);
    int keys_at = heads * key_dim;
    int values_at = keys_at + kv_heads * key_dim;
    auto turned = [&](int first, int count, const auto& norm) {
      mx::array taken = take_heads(qkv, first, count, key_dim, stream_);
      mx::array even = normalise(taken, norm, stream_);
      return rotate(layer, even, *positions_, stream_);
    };
    mx::array q = turned(0, heads, spec.query_norm);
    mx::array k = turned(keys_at, kv_heads, spec.key_norm);
    mx::array v = take_heads(qkv, values_at, kv_heads, value_dim, stream_);

    std::vector<mx::array> outputs;
    for (const Segment& seg : step.segments) {
      LayerKv& kv = pool_->sequence(seg.sequence).layers.at(spec.layer);
      auto [keys, values] = pool_->append(
          kv,
          seg.position,
          segment_heads(k, seg, stream_),
          segment_heads(v, seg, stream_),
          stream_
      );
      outputs.push_back(attend_segment(
          spec, seg, segment_heads(q, seg, stream_), keys, values, stream_
      ));
    }
    return wrap(
        outputs.size() == 1 ? outputs[0] : mx::concatenate(outputs, 0, stream_)
    );
  } catch (...) {
    lost_ = true;
    rethrow(layer.name);
  }
}

}  // namespace mlxcel::backend::graph
