#pragma once

#include <cstdint>

#include "mlxcel/backend/cpu/attention_kernels.h"
#include "mlxcel/backend/cpu/attention_product.h"
#include "mlxcel/backend/cpu/row_kernels.h"
#include "mlxcel/backend/cpu/simd_math.h"

namespace mlxcel::backend::cpu {

/// The attention kernels over one set of vector functions; included by the
/// file of each instruction set. Online softmax: Milakov and Gimelshein 2018,
/// arXiv:1805.02867, in powers of two.
template <class S>
struct AttentionOperations {
  using F = typename S::F;
  static constexpr int64_t kWidth = S::kWidth;
  static constexpr float kMasked = -__builtin_inff();
  // Below any score, yet finite: a tile without a visible key changes nothing.
  static constexpr float kNothing = -1e30F;
  // Lanes of the widest vectors; sizes are rounded up to it.
  static constexpr int64_t kWidest = 16;
  // Queries of a decode piece whose scores are on the stack at once.
  static constexpr int64_t kQueries = 12;

  static void rotate(
      const HeadTransform& transform, const float* rotation, float* x
  ) {
    int64_t half = transform.rotary_dims / 2;
    const float* cosine = rotation;
    const float* sine = rotation + half;
    if (transform.interleaved) {
      for (int64_t i = 0; i < half; ++i) {
        float a = x[2 * i];
        float b = x[2 * i + 1];
        x[2 * i] = a * cosine[i] - b * sine[i];
        x[2 * i + 1] = a * sine[i] + b * cosine[i];
      }
    } else {
      float* y = x + half;
      for (int64_t i = 0; i < half; ++i) {
        float a = x[i];
        float b = y[i];
        x[i] = a * cosine[i] - b * sine[i];
        y[i] = a * sine[i] + b * cosine[i];
      }
    }
  }

  static void transform_heads(
      const HeadTransform& transform,
      const float* x,
      int64_t count,
      const float* rotation,
      float* y
  ) {
    int64_t dim = transform.dim;
    for (int64_t head = 0; head < count; ++head, x += dim, y += dim) {
      if (transform.norm_weight != nullptr) {
        RowOperations<S>::rms_norm(
            x, transform.norm_weight, transform.epsilon, dim, y
        );
      } else {
        __builtin_memcpy(y, x, static_cast<size_t>(dim) * sizeof(float));
      }
      rotate(transform, rotation, y);
      for (int64_t i = 0; i < dim; ++i) {
        y[i] *= transform.factor;
      }
    }
  }

  // `n` float32 values as half precision, zeros up to the vector's end.
  static void to_half(const float* x, int64_t n, uint16_t* y) {
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) {
      S::store_half(y + i, S::load(x + i));
    }
    if (i < n) {
      float rest[kWidth] = {};
      for (int64_t j = i; j < n; ++j) {
        rest[j - i] = x[j];
      }
      S::store_half(y + i, S::load(rest));
    }
  }

  static void append(
      const KvView& kv,
      int64_t kv_heads,
      int32_t block,
      int64_t slot,
      const float* keys,
      const float* values
  ) {
    for (int64_t head = 0; head < kv_heads; ++head) {
      const float* key = keys + head * kv.key_dim;
      const float* value = values + head * kv.value_dim;
      if (kv.half) {
        auto* k = reinterpret_cast<uint16_t*>(kv.keys(block, head)) + slot;
        auto* v = reinterpret_cast<uint16_t*>(kv.values(block, head)) +
                  slot * kv.value_stride;
        for (int64_t i = 0; i < kv.key_dim; i += kWidth) {
          uint16_t lanes[kWidth];
          int64_t n = kv.key_dim - i < kWidth ? kv.key_dim - i : kWidth;
          to_half(key + i, n, lanes);
          for (int64_t j = 0; j < n; ++j) {
            k[(i + j) * kBlockTokens] = lanes[j];
          }
        }
        to_half(value, kv.value_dim, v);
      } else {
        auto* k = reinterpret_cast<float*>(kv.keys(block, head)) + slot;
        auto* v = reinterpret_cast<float*>(kv.values(block, head)) +
                  slot * kv.value_stride;
        for (int64_t i = 0; i < kv.key_dim; ++i) {
          k[i * kBlockTokens] = key[i];
        }
        __builtin_memcpy(
            v, value, static_cast<size_t>(kv.value_dim) * sizeof(float)
        );
      }
    }
  }

  // Masks all but columns [low, high) of a row of scores, turns the scores
  // into weights and brings the running peak and sum up to date. Returns the
  // factor on what was summed before.
  static float weigh(
      float* scores, int64_t low, int64_t high, float* peak, float* sum
  ) {
    for (int64_t i = 0; i < low; ++i) {
      scores[i] = kMasked;
    }
    for (int64_t i = high < 0 ? 0 : high; i < kTileTokens; ++i) {
      scores[i] = kMasked;
    }
    F largest = S::load(scores);
    for (int64_t i = kWidth; i < kTileTokens; i += kWidth) {
      largest = S::max(largest, S::load(scores + i));
    }
    float before = *peak;
    float now = S::largest(largest);
    now = now > before ? now : before;
    F shift = S::set(now);
    F total = S::set(0);
    for (int64_t i = 0; i < kTileTokens; i += kWidth) {
      F weight = exp2_of<S>(S::load(scores + i) - shift);
      S::store(scores + i, weight);
      total = total + weight;
    }
    // 2^0 is exactly 1: the shortcut does not change a bit.
    float factor = now > before ? exp2_of_one<S>(before - now) : 1.0F;
    *peak = now;
    *sum = *sum * factor + S::sum(total);
    return factor;
  }

  // Scores of a tile's first `tokens` tokens, block by block.
  template <class T>
  static void score_tile(
      const SpanWork& work,
      int64_t tile,
      int64_t tokens,
      int64_t from,
      int64_t count,
      float* scores
  ) {
    const KvView& kv = *work.kv;
    const int32_t* blocks = work.blocks + tile / kBlockTokens;
    for (int64_t at = 0; at < tokens; at += kBlockTokens, ++blocks) {
      bool more = tile + at + kBlockTokens < work.end;
      SmallProduct<S>::template multiply<T>({
          .rows = count,
          .cols = kBlockTokens,
          .depth = kv.key_dim,
          .a = work.queries + from * kv.key_dim,
          .lda = kv.key_dim,
          .b = reinterpret_cast<const T*>(kv.keys(blocks[0], work.kv_head)),
          .ldb = kBlockTokens,
          .c = scores + at,
          .ldc = kTileTokens,
          .factors = nullptr,
          .ahead = more ? block_distance(kv, blocks) : 0,
      });
    }
  }

  // Adds the tile's weighted values; `factors` null: nothing was summed yet.
  template <class T>
  static void sum_tile(
      const SpanWork& work,
      int64_t tile,
      int64_t tokens,
      int64_t from,
      int64_t count,
      const float* weights,
      const float* factors
  ) {
    static constexpr float kOnes[kQueries] = {
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const KvView& kv = *work.kv;
    const int32_t* blocks = work.blocks + tile / kBlockTokens;
    for (int64_t at = 0; at < tokens; at += kBlockTokens, ++blocks) {
      bool more = tile + at + kBlockTokens < work.end;
      int64_t left = tokens - at;
      SmallProduct<S>::template multiply<T>({
          .rows = count,
          .cols = kv.value_stride,
          .depth = left < kBlockTokens ? left : kBlockTokens,
          .a = weights + at,
          .lda = kTileTokens,
          .b = reinterpret_cast<const T*>(kv.values(blocks[0], work.kv_head)),
          .ldb = kv.value_stride,
          .c = work.partial + from * kv.value_stride,
          .ldc = kv.value_stride,
          .factors = at == 0 ? factors : kOnes,
          .ahead = more ? block_distance(kv, blocks) : 0,
      });
    }
  }

  // Bytes from a block to the sequence's next.
  static ptrdiff_t block_distance(const KvView& kv, const int32_t* blocks) {
    return (static_cast<ptrdiff_t>(blocks[1]) - blocks[0]) *
           static_cast<ptrdiff_t>(kv.block_stride);
  }

  template <class T>
  static void span_of(const SpanWork& work, int64_t from, int64_t count) {
    float* peaks = work.partial + work.group * work.kv->value_stride + from;
    float* sums = peaks + work.group;
    for (int64_t i = 0; i < count; ++i) {
      peaks[i] = kNothing;
      sums[i] = 0;
    }
    alignas(64) float scores[kQueries * kTileTokens];
    float factors[kQueries];
    int64_t start = work.first / kTileTokens * kTileTokens;
    for (int64_t tile = start; tile < work.end; tile += kTileTokens) {
      int64_t tokens = work.end - tile;
      tokens = tokens < kTileTokens ? tokens : kTileTokens;
      score_tile<T>(work, tile, tokens, from, count, scores);
      for (int64_t i = 0; i < count; ++i) {
        factors[i] = weigh(
            scores + i * kTileTokens,
            work.first - tile,
            tokens,
            peaks + i,
            sums + i
        );
      }
      sum_tile<T>(
          work,
          tile,
          tokens,
          from,
          count,
          scores,
          tile == start ? nullptr : factors
      );
    }
  }

  static void attend_span(const SpanWork& work) {
    for (int64_t from = 0; from < work.group; from += kQueries) {
      int64_t count = work.group - from;
      count = count < kQueries ? count : kQueries;
      if (work.kv->half) {
        span_of<uint16_t>(work, from, count);
      } else {
        span_of<float>(work, from, count);
      }
    }
  }

  static void combine_spans(
      const float* partials,
      int64_t spans,
      int64_t group,
      int64_t value_dim,
      int64_t value_stride,
      float* out
  ) {
    int64_t stride = partial_floats(group, value_stride);
    const float* peaks = partials + group * value_stride;
    const float* sums = peaks + group;
    for (int64_t i = 0; i < group; ++i, out += value_dim) {
      float peak = kNothing;
      for (int64_t s = 0; s < spans; ++s) {
        float p = peaks[s * stride + i];
        peak = p > peak ? p : peak;
      }
      float sum = 0;
      for (int64_t s = 0; s < spans; ++s) {
        float factor = exp2_of_one<S>(peaks[s * stride + i] - peak);
        sum += sums[s * stride + i] * factor;
        const float* values = partials + s * stride + i * value_stride;
        for (int64_t d = 0; d < value_dim; ++d) {
          out[d] = values[d] * factor + (s == 0 ? 0.0F : out[d]);
        }
      }
      float inverse = 1.0F / sum;
      for (int64_t d = 0; d < value_dim; ++d) {
        out[d] *= inverse;
      }
    }
  }

  // Widens the blocks of a tile's first tokens: keys to [key_dim, kTileTokens],
  // values to [tokens, value_stride].
  template <class T>
  static void unpack_tile(
      const BlockWork& work,
      int64_t tile,
      int64_t tokens,
      float* keys,
      float* values
  ) {
    const KvView& kv = *work.kv;
    for (int64_t at = 0; at < tokens; at += kBlockTokens) {
      int64_t n = tokens - at < kBlockTokens ? tokens - at : kBlockTokens;
      int32_t block = work.blocks[(tile + at) / kBlockTokens];
      const auto* k = reinterpret_cast<const T*>(kv.keys(block, work.kv_head));
      const auto* v =
          reinterpret_cast<const T*>(kv.values(block, work.kv_head));
      for (int64_t d = 0; d < kv.key_dim; ++d) {
        for (int64_t i = 0; i < kBlockTokens; i += kWidth) {
          S::store(
              keys + d * kTileTokens + at + i, S::load(k + d * kBlockTokens + i)
          );
        }
      }
      for (int64_t i = 0; i < n * kv.value_stride; i += kWidth) {
        S::store(values + at * kv.value_stride + i, S::load(v + i));
      }
    }
  }

  static void attend_block(const BlockWork& work) {
    const KvView& kv = *work.kv;
    int64_t queries = work.rows * work.group;
    float* keys = work.scratch;
    float* values = keys + kTileTokens * kv.key_dim;
    float* scores = values + kTileTokens * kv.value_stride;
    float* sums = scores + queries * kTileTokens;
    float* peaks = sums + queries * kv.value_stride;
    float* totals = peaks + queries;
    float* factors = totals + queries;
    for (int64_t i = 0; i < queries * kv.value_stride; ++i) {
      sums[i] = 0;
    }
    for (int64_t i = 0; i < queries; ++i) {
      peaks[i] = kNothing;
      totals[i] = 0;
    }
    int64_t first = 0;
    if (work.window > 0 && work.position + 1 > work.window) {
      first = work.position + 1 - work.window;
    }
    int64_t end = work.position + work.rows;
    int64_t tile = first / kTileTokens * kTileTokens;
    for (; tile < end; tile += kTileTokens) {
      int64_t tokens = end - tile;
      tokens = tokens < kTileTokens ? tokens : kTileTokens;
      if (kv.half) {
        unpack_tile<uint16_t>(work, tile, tokens, keys, values);
      } else {
        unpack_tile<float>(work, tile, tokens, keys, values);
      }
      // Columns that no row sees are masked below, whatever they hold.
      SmallProduct<S>::template multiply<float>({
          .rows = queries,
          .cols = (tokens + kWidest - 1) / kWidest * kWidest,
          .depth = kv.key_dim,
          .a = work.queries,
          .lda = kv.key_dim,
          .b = keys,
          .ldb = kTileTokens,
          .c = scores,
          .ldc = kTileTokens,
          .factors = nullptr,
          .ahead = 0,
      });
      for (int64_t i = 0; i < queries; ++i) {
        int64_t high = work.position + i / work.group + 1;
        int64_t low = work.window > 0 ? high - work.window : 0;
        factors[i] = weigh(
            scores + i * kTileTokens,
            low - tile < kTileTokens ? low - tile : kTileTokens,
            high - tile,
            peaks + i,
            totals + i
        );
      }
      SmallProduct<S>::template multiply<float>({
          .rows = queries,
          .cols = kv.value_stride,
          .depth = tokens,
          .a = scores,
          .lda = kTileTokens,
          .b = values,
          .ldb = kv.value_stride,
          .c = sums,
          .ldc = kv.value_stride,
          .factors = factors,
          .ahead = 0,
      });
    }
    for (int64_t i = 0; i < queries; ++i) {
      float* out = work.out + i / work.group * work.out_stride +
                   i % work.group * kv.value_dim;
      float inverse = 1.0F / totals[i];
      for (int64_t d = 0; d < kv.value_dim; ++d) {
        out[d] = sums[i * kv.value_stride + d] * inverse;
      }
    }
  }

  static constexpr AttentionKernels table() {
    return {transform_heads, append, attend_span, combine_spans, attend_block};
  }
};

}  // namespace mlxcel::backend::cpu
