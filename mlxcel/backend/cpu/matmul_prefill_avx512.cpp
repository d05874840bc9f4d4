#include "mlxcel/backend/cpu/matmul_avx512.h"

/// Panels of sixteen rows of weights, unpacked once, times many rows of
/// activations: lane i of each register belongs to row i of the panel.
namespace mlxcel::backend::cpu::avx512 {

namespace {

// v[i] lane j becomes v[j] lane i, in units of 32 bits.
__attribute__((always_inline)) inline void transpose(__m512i (&v)[16]) {
  __m512i w[16];
  unroll<8>([&](auto i) __attribute__((always_inline)) {
    constexpr int at = 2 * i.value;
    w[at] = _mm512_unpacklo_epi32(v[at], v[at + 1]);
    w[at + 1] = _mm512_unpackhi_epi32(v[at], v[at + 1]);
  });
  // u[4i + j]: of each 128 bits column j of rows 4i .. 4i + 3.
  __m512i u[16];
  unroll<4>([&](auto i) __attribute__((always_inline)) {
    constexpr int at = 4 * i.value;
    u[at] = _mm512_unpacklo_epi64(w[at], w[at + 2]);
    u[at + 1] = _mm512_unpackhi_epi64(w[at], w[at + 2]);
    u[at + 2] = _mm512_unpacklo_epi64(w[at + 1], w[at + 3]);
    u[at + 3] = _mm512_unpackhi_epi64(w[at + 1], w[at + 3]);
  });
  unroll<4>([&](auto j) __attribute__((always_inline)) {
    constexpr int at = j.value;
    __m512i a = _mm512_shuffle_i32x4(u[at], u[4 + at], 0x88);
    __m512i b = _mm512_shuffle_i32x4(u[at], u[4 + at], 0xdd);
    __m512i c = _mm512_shuffle_i32x4(u[8 + at], u[12 + at], 0x88);
    __m512i d = _mm512_shuffle_i32x4(u[8 + at], u[12 + at], 0xdd);
    v[at] = _mm512_shuffle_i32x4(a, c, 0x88);
    v[8 + at] = _mm512_shuffle_i32x4(a, c, 0xdd);
    v[4 + at] = _mm512_shuffle_i32x4(b, d, 0x88);
    v[12 + at] = _mm512_shuffle_i32x4(b, d, 0xdd);
  });
}

// Row `lane` of the span; rows beyond its last repeat that.
int64_t clamp_row(const RowSpan& span, int64_t lane) {
  return lane < span.rows ? lane : span.rows - 1;
}

// Values of a plane [rows, stride bytes] from `begin` on, transposed:
// out[count, 16].
void pack_values(
    ScaleType type,
    const RowSpan& span,
    const std::byte* plane,
    int64_t stride,
    int64_t begin,
    int64_t count,
    float* out
) {
  for (int64_t i = 0; i < count; i += 16) {
    auto mask = static_cast<__mmask16>(byte_mask(count - i));
    __m512i v[16];
    for (int64_t lane = 0; lane < 16; ++lane) {
      const std::byte* row = plane + clamp_row(span, lane) * stride;
      v[lane] = _mm512_castps_si512(
          load_values(type, row + (begin + i) * value_bytes(type), mask)
      );
    }
    transpose(v);
    for (int64_t j = 0; j < 16 && i + j < count; ++j) {
      _mm512_store_si512(out + (i + j) * 16, v[j]);
    }
  }
}

// 4 bit: 128 columns at a time are transposed as they are, words of eight
// codes, and then unpacked.
template <bool kBlock>
void pack_nibbles(
    const RowFormat& format,
    const RowSpan& span,
    int64_t begin,
    int64_t cols,
    std::byte* out
) {
  // Of each pair of words the bits where the first (last) four codes start.
  alignas(64) uint8_t first[64];
  for (int i = 0; i < 64; ++i) {
    first[i] = static_cast<uint8_t>(i % 8 / 4 * 32 + i % 4 * 4);
  }
  __m512i lower = _mm512_load_si512(first);
  __m512i upper = _mm512_add_epi8(lower, _mm512_set1_epi8(16));
  __m512i nibble = _mm512_set1_epi8(15);
  for (int64_t i = 0; i < cols; i += 128) {
    int64_t left = cols - i < 128 ? cols - i : 128;
    __mmask64 mask = byte_mask(left / 2);
    __m512i v[16];
    for (int64_t lane = 0; lane < 16; ++lane) {
      const std::byte* row =
          span.codes + clamp_row(span, lane) * format.code_bytes;
      v[lane] = _mm512_maskz_loadu_epi8(mask, row + (begin + i) / 2);
    }
    transpose(v);
    for (int64_t j = 0; j < left / 8; ++j) {
      std::byte* to = out + (i / 4 + 2 * j) * 64;
      __m512i a = _mm512_multishift_epi64_epi8(lower, v[j]);
      __m512i b = _mm512_multishift_epi64_epi8(upper, v[j]);
      a = nibble_codes<kBlock>(_mm512_and_si512(a, nibble));
      b = nibble_codes<kBlock>(_mm512_and_si512(b, nibble));
      _mm512_store_si512(to, a);
      _mm512_store_si512(to + 64, b);
    }
  }
}

template <int Bits>
void pack_codes(
    const RowFormat& format,
    const RowSpan& span,
    int64_t begin,
    int64_t cols,
    std::byte* out
) {
  Codes<Bits> codes;
  for (int64_t i = 0; i < cols; i += 64) {
    int64_t left = cols - i < 64 ? cols - i : 64;
    __mmask64 mask = byte_mask(left * Bits / 8);
    __m512i v[16];
    for (int64_t lane = 0; lane < 16; ++lane) {
      const std::byte* row =
          span.codes + clamp_row(span, lane) * format.code_bytes;
      v[lane] = codes.load(row + (begin + i) * Bits / 8, mask);
    }
    transpose(v);
    for (int64_t j = 0; j < left / 4; ++j) {
      _mm512_store_si512(out + (i / 4 + j) * 64, v[j]);
    }
  }
}

void pack_block(
    const RowFormat& format,
    const RowSpan& span,
    int64_t begin,
    int64_t cols,
    const Panel& panel
) {
  auto* codes = static_cast<std::byte*>(panel.codes);
  pack_nibbles<true>(format, span, begin, cols, codes);
  int64_t first = begin / format.group;
  int64_t groups = cols / format.group;
  for (int64_t i = 0; i < groups; i += 16) {
    auto mask = static_cast<__mmask16>(byte_mask(groups - i));
    __m512i v[16];
    for (int64_t lane = 0; lane < 16; ++lane) {
      const std::byte* row =
          span.scales + clamp_row(span, lane) * format.scale_bytes;
      v[lane] = _mm512_castps_si512(
          load_scales<true>(format.type, format.factor, row + first + i, mask)
      );
    }
    transpose(v);
    for (int64_t j = 0; j < 16 && i + j < groups; ++j) {
      __m512 scale = _mm512_castsi512_ps(v[j]);
      _mm512_store_ps(panel.scales + (i + j) * 16, scale);
      _mm512_store_ps(panel.biases + (i + j) * 16, block_bias(scale));
    }
  }
}

// The sums of P panels times N rows of activations.
template <int P, int N>
struct Tile {
  __m512 sums[P][N];

  Tile(bool first, const float* tile, int64_t ld) {
    each([&](auto p, auto n) __attribute__((always_inline)) {
      sums[p.value][n.value] =
          first ? _mm512_setzero_ps()
                : _mm512_loadu_ps(tile + n.value * ld + p.value * 16);
    });
  }

  void store(float* tile, int64_t ld) const {
    each([&](auto p, auto n) __attribute__((always_inline)) {
      _mm512_storeu_ps(
          tile + n.value * ld + p.value * 16, sums[p.value][n.value]
      );
    });
  }

  template <typename F>
  __attribute__((always_inline)) static void each(F&& f) {
    unroll<N>([&](auto n) __attribute__((always_inline)) {
      unroll<P>([&](auto p) __attribute__((always_inline)) { f(p, n); });
    });
  }
};

template <int P, int N, int Group>
void int8_tile(
    const Panel* panels,
    int64_t cols,
    const Int8Rows& x,
    int64_t row,
    bool first,
    float* tile,
    int64_t ld_tile
) {
  tile += row * ld_tile;
  Tile<P, N> result(first, tile, ld_tile);
  const int8_t* q = x.q + row * x.ld_q;
  const float* scale = x.scale + row * x.ld_scale;
  const float* sum = x.sum + row * x.ld_scale;
  const std::byte* codes[P];
  for (int p = 0; p < P; ++p) {
    codes[p] = static_cast<const std::byte*>(panels[p].codes);
  }
  int64_t groups = cols / Group;
  for (int64_t g = 0; g < groups; ++g) {
    __m512i dots[P][N];
    result.each([&](auto p, auto n) __attribute__((always_inline)) {
      dots[p.value][n.value] = _mm512_setzero_si512();
    });
    constexpr int kStep = Group < 32 ? Group : 32;
    for (int k = 0; k < Group; k += kStep) {
      unroll<kStep / 4>([&](auto j) __attribute__((always_inline)) {
        __m512i w[P];
        unroll<P>([&](auto p) __attribute__((always_inline)) {
          w[p.value] = _mm512_load_si512(codes[p.value] + j.value * 64);
        });
        unroll<N>([&](auto n) __attribute__((always_inline)) {
          int32_t four;
          __builtin_memcpy(&four, q + n.value * x.ld_q + j.value * 4, 4);
          __m512i v = _mm512_set1_epi32(four);
          unroll<P>([&](auto p) __attribute__((always_inline)) {
            __m512i& dot = dots[p.value][n.value];
            dot = _mm512_dpbusd_epi32(dot, w[p.value], v);
          });
        });
      });
      q += kStep;
      for (int p = 0; p < P; ++p) {
        codes[p] += 16 * kStep;
      }
    }
    unroll<P>([&](auto p) __attribute__((always_inline)) {
      __m512 scales = _mm512_load_ps(panels[p.value].scales + g * 16);
      __m512 biases = _mm512_load_ps(panels[p.value].biases + g * 16);
      unroll<N>([&](auto n) __attribute__((always_inline)) {
        int64_t at = n.value * x.ld_scale + g;
        __m512& total = result.sums[p.value][n.value];
        __m512 factor = _mm512_mul_ps(scales, _mm512_set1_ps(scale[at]));
        total = _mm512_fmadd_ps(biases, _mm512_set1_ps(sum[at]), total);
        total = _mm512_fmadd_ps(
            _mm512_cvtepi32_ps(dots[p.value][n.value]), factor, total
        );
      });
    });
  }
  result.store(tile, ld_tile);
}

template <int P, int Group>
void int8_panels(
    const Panel* panels,
    int64_t cols,
    const Int8Rows& x,
    int64_t count,
    bool first,
    float* tile,
    int64_t ld_tile
) {
  int64_t row = 0;
  auto run = [&](auto rows) {
    int8_tile<P, rows.value, Group>(panels, cols, x, row, first, tile, ld_tile);
    row += rows.value;
  };
  while (row + 6 <= count) {
    run(Constant<6>());
  }
  if (row + 4 <= count) {
    run(Constant<4>());
  }
  if (row + 2 <= count) {
    run(Constant<2>());
  }
  if (row < count) {
    run(Constant<1>());
  }
}

template <int P, int N>
void float_tile(
    const Panel* panels,
    int64_t cols,
    const float* x,
    int64_t ldx,
    bool first,
    float* tile,
    int64_t ld_tile
) {
  Tile<P, N> result(first, tile, ld_tile);
  const float* values[P];
  for (int p = 0; p < P; ++p) {
    values[p] = static_cast<const float*>(panels[p].codes);
  }
  for (int64_t i = 0; i < cols; ++i) {
    __m512 w[P];
    unroll<P>([&](auto p) __attribute__((always_inline)) {
      w[p.value] = _mm512_load_ps(values[p.value] + i * 16);
    });
    unroll<N>([&](auto n) __attribute__((always_inline)) {
      __m512 v = _mm512_set1_ps(x[n.value * ldx + i]);
      unroll<P>([&](auto p) __attribute__((always_inline)) {
        __m512& total = result.sums[p.value][n.value];
        total = _mm512_fmadd_ps(w[p.value], v, total);
      });
    });
  }
  result.store(tile, ld_tile);
}

template <int P>
void float_panels(
    const Panel* panels,
    int64_t cols,
    const float* x,
    int64_t ldx,
    int64_t count,
    bool first,
    float* tile,
    int64_t ld_tile
) {
  auto run = [&](auto rows) {
    float_tile<P, rows.value>(panels, cols, x, ldx, first, tile, ld_tile);
    x += rows.value * ldx;
    tile += rows.value * ld_tile;
    count -= rows.value;
  };
  while (count >= 12) {
    run(Constant<12>());
  }
  if (count >= 8) {
    run(Constant<8>());
  }
  if (count >= 4) {
    run(Constant<4>());
  }
  if (count >= 2) {
    run(Constant<2>());
  }
  if (count >= 1) {
    run(Constant<1>());
  }
}

}  // namespace

void pack_int8(const RowFormat& format, const RowSpan& span, int64_t begin, int64_t cols, const Panel& panel, std::byte*) {
  if (format.coding == Coding::e2m1) {
    pack_block(format, span, begin, cols, panel);
    return;
  }
  with_bits(format.bits, [&](auto bits) {
    constexpr auto kPack =
        bits.value == 4 ? pack_nibbles<false> : pack_codes<bits.value>;
    kPack(format, span, begin, cols, static_cast<std::byte*>(panel.codes));
  });
  int64_t first = begin / format.group;
  int64_t groups = cols / format.group;
  int64_t stride = format.scale_bytes;
  pack_values(
      format.type, span, span.scales, stride, first, groups, panel.scales
  );
  pack_values(
      format.type, span, span.biases, stride, first, groups, panel.biases
  );
}

void multiply_int8(
    const RowFormat& format,
    const Panel* panels,
    int count_panels,
    int64_t cols,
    const Int8Rows& x,
    int64_t count,
    bool first,
    float* tile,
    int64_t ld_tile
) {
  if (format.group == 16) {
    auto function = count_panels == 2 ? int8_panels<2, 16> : int8_panels<1, 16>;
    function(panels, cols, x, count, first, tile, ld_tile);
    return;
  }
  with_group(format.group, [&](auto group) {
    auto function = count_panels == 2 ? int8_panels<2, group.value>
                                      : int8_panels<1, group.value>;
    function(panels, cols, x, count, first, tile, ld_tile);
  });
}

void pack_float(
    const RowFormat& format,
    const RowSpan& span,
    int64_t begin,
    int64_t cols,
    const Panel& panel,
    std::byte* scratch
) {
  auto* out = static_cast<float*>(panel.codes);
  if (format.bits == 0) {
    pack_values(
        format.type, span, span.codes, format.code_bytes, begin, cols, out
    );
    return;
  }
  // 64 columns at a time, so that they are read back from the nearest cache.
  auto* values = reinterpret_cast<float*>(scratch);
  for (int64_t i = 0; i < cols; i += 64) {
    int64_t left = cols - i < 64 ? cols - i : 64;
    for (int64_t lane = 0; lane < 16; ++lane) {
      int64_t r = clamp_row(span, lane);
      RowSpan row = span;
      row.codes += r * format.code_bytes;
      row.scales += r * format.scale_bytes;
      row.biases += r * format.scale_bytes;
      dequantize(format, row, begin + i, left, values + lane * 64);
    }
    RowSpan all{};
    all.rows = 16;
    pack_values(
        ScaleType::f32,
        all,
        reinterpret_cast<const std::byte*>(values),
        64 * 4,
        0,
        left,
        out + i * 16
    );
  }
}

void multiply_float(
    const Panel* panels,
    int count_panels,
    int64_t cols,
    const float* x,
    int64_t ldx,
    int64_t count,
    bool first,
    float* tile,
    int64_t ld_tile
) {
  auto function = count_panels == 2 ? float_panels<2> : float_panels<1>;
  function(panels, cols, x, ldx, count, first, tile, ld_tile);
}

}  // namespace mlxcel::backend::cpu::avx512
