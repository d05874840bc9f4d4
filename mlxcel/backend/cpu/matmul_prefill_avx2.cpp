#include "mlxcel/backend/cpu/matmul_avx2.h"

/// Panels of sixteen rows of weights, unpacked once, times many rows of
/// activations: a lane of the two registers belongs to a row of the panel.
/// Codes up to 4 bits are kept as bytes, four columns of a row in a lane;
/// wider ones as 16 bits, two columns in a lane.
namespace mlxcel::backend::cpu::avx2 {

namespace {

// v[i] lane j becomes v[j] lane i, in units of 32 bits.
void transpose(__m256i (&v)[8]) {
  __m256i w[8];
  unroll<4>([&](auto i) __attribute__((always_inline)) {
    w[2 * i.value] = _mm256_unpacklo_epi32(v[2 * i.value], v[2 * i.value + 1]);
    w[2 * i.value + 1] =
        _mm256_unpackhi_epi32(v[2 * i.value], v[2 * i.value + 1]);
  });
  // u[4i + j]: of both halves column j of rows 4i .. 4i + 3.
  __m256i u[8];
  unroll<2>([&](auto i) __attribute__((always_inline)) {
    constexpr int at = 4 * i.value;
    u[at] = _mm256_unpacklo_epi64(w[at], w[at + 2]);
    u[at + 1] = _mm256_unpackhi_epi64(w[at], w[at + 2]);
    u[at + 2] = _mm256_unpacklo_epi64(w[at + 1], w[at + 3]);
    u[at + 3] = _mm256_unpackhi_epi64(w[at + 1], w[at + 3]);
  });
  unroll<4>([&](auto j) __attribute__((always_inline)) {
    constexpr int at = j.value;
    v[at] = _mm256_permute2x128_si256(u[at], u[at + 4], 0x20);
    v[at + 4] = _mm256_permute2x128_si256(u[at], u[at + 4], 0x31);
  });
}

// Row `lane` of the span; rows beyond its last repeat that.
int64_t clamp_row(const RowSpan& span, int64_t lane) {
  return lane < span.rows ? lane : span.rows - 1;
}

// Calls f(half, i, v) for eight rows and eight units of 32 bits of each at a
// time, with v transposed; load(lane, i) gives a row's.
template <typename Load, typename Store>
__attribute__((always_inline)) inline void for_transposed(
    int64_t count, int64_t step, Load load, Store store
) {
  for (int64_t i = 0; i < count; i += step) {
    for (int64_t half = 0; half < 2; ++half) {
      __m256i v[8];
      for (int64_t lane = 0; lane < 8; ++lane) {
        v[lane] = load(8 * half + lane, i);
      }
      transpose(v);
      store(half, i, v);
    }
  }
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
  for_transposed(
      count,
      8,
      [&](int64_t lane, int64_t i) {
        const std::byte* row = plane + clamp_row(span, lane) * stride;
        return _mm256_castps_si256(
            load_values(type, row + (begin + i) * value_bytes(type), count - i)
        );
      },
      [&](int64_t half, int64_t i, const __m256i(&v)[8]) {
        for (int64_t j = 0; j < 8 && i + j < count; ++j) {
          _mm256_store_ps(
              out + (i + j) * 16 + half * 8, _mm256_castsi256_ps(v[j])
          );
        }
      }
  );
}

// 4 bit: 64 columns at a time are transposed as they are, words of eight
// codes, and then unpacked.
template <bool kBlock>
void pack_nibbles(
    const RowFormat& format,
    const RowSpan& span,
    int64_t begin,
    int64_t cols,
    std::byte* out
) {
  __m256i nibble = _mm256_set1_epi8(15);
  for_transposed(
      cols,
      64,
      [&](int64_t lane, int64_t i) {
        const std::byte* row =
            span.codes + clamp_row(span, lane) * format.code_bytes;
        row += (begin + i) / 2;
        return cols - i < 64 ? _mm256_zextsi128_si256(load_16(row))
                             : load_32(row);
      },
      [&](int64_t half, int64_t i, const __m256i(&v)[8]) {
        for (int64_t j = 0; j < 8 && i + 8 * j < cols; ++j) {
          __m256i even = nibble_codes<kBlock>(_mm256_and_si256(v[j], nibble));
          __m256i odd = nibble_codes<kBlock>(
              _mm256_and_si256(_mm256_srli_epi16(v[j], 4), nibble)
          );
          // Both fours of codes of a row, one after the other.
          __m256 a = _mm256_castsi256_ps(_mm256_unpacklo_epi8(even, odd));
          __m256 b = _mm256_castsi256_ps(_mm256_unpackhi_epi8(even, odd));
          auto* to =
              reinterpret_cast<float*>(out + (i + 8 * j) * 16) + 8 * half;
          _mm256_store_ps(to, _mm256_shuffle_ps(a, b, 0x88));
          _mm256_store_ps(to + 16, _mm256_shuffle_ps(a, b, 0xdd));
        }
      }
  );
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
  auto load = [&](int64_t lane, int64_t i) {
    const std::byte* row =
        span.codes + clamp_row(span, lane) * format.code_bytes;
    return codes.load(row + (begin + i) * Bits / 8);
  };
  auto store = [&](int64_t at, const __m256i(&v)[8]) {
    for (int64_t j = 0; j < 8; ++j) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(out + at + j * 64), v[j]);
    }
  };
  if constexpr (Bits <= 4) {
    for_transposed(
        cols,
        32,
        load,
        [&](int64_t half, int64_t i, const __m256i(&v)[8]) {
          store(i * 16 + half * 32, v);
        }
    );
    return;
  }
  // The same, then the bytes of each unit go to 16 bits: columns 0 and 1 of
  // a unit to the first of two units, 2 and 3 to the second.
  for_transposed(
      cols,
      32,
      load,
      [&](int64_t half, int64_t i, const __m256i(&v)[8]) {
        __m256i pair = _mm256_set1_epi32(0x0000ffff);
        __m256i first = _mm256_set1_epi32(0x000000ff);
        __m256i wide[2][8];
        for (int j = 0; j < 8; ++j) {
          __m256i lower = _mm256_and_si256(v[j], pair);
          __m256i upper = _mm256_srli_epi32(v[j], 16);
          auto spread = [&](__m256i x) {
            return _mm256_or_si256(
                _mm256_and_si256(x, first),
                _mm256_slli_epi32(_mm256_srli_epi32(x, 8), 16)
            );
          };
          wide[j / 4][j % 4 * 2] = spread(lower);
          wide[j / 4][j % 4 * 2 + 1] = spread(upper);
        }
        store(i * 32 + half * 32, wide[0]);
        store((i + 16) * 32 + half * 32, wide[1]);
      }
  );
}

// Kept together so that the compiler does not spill the sums.
__attribute__((always_inline)) inline void add_byte_products(
    __m256i& sum, __m256i codes, __m256i x
) {
  __m256i product;
  asm("vpmaddubsw %[x], %[codes], %[product]\n\t"
      "vpaddw %[product], %[sum], %[sum]"
      : [sum] "+x"(sum), [product] "=&x"(product)
      : [codes] "x"(codes), [x] "x"(x));
}

__attribute__((always_inline)) inline void add_wide_products(
    __m256i& sum, __m256i codes, __m256i x
) {
  __m256i product;
  asm("vpmaddwd %[x], %[codes], %[product]\n\t"
      "vpaddd %[product], %[sum], %[sum]"
      : [sum] "+x"(sum), [product] "=&x"(product)
      : [codes] "x"(codes), [x] "x"(x));
}

// scale[g][n] of N rows of activations.
template <int N>
struct Scales {
  float at[kPanelCols / 16][N];

  Scales(const Int8Rows& x, int64_t groups) {
    for (int64_t g = 0; g < groups; ++g) {
      unroll<N>([&](auto n) __attribute__((always_inline)) {
        at[g][n.value] = x.scale[n.value * x.ld_scale + g];
      });
    }
  }
};

// The results of N rows of activations and the sixteen rows of a panel.
template <int N>
struct Tile {
  alignas(32) float at[N][16];

  template <typename F>
  __attribute__((always_inline)) static void each(F&& f) {
    unroll<N>([&](auto n) __attribute__((always_inline)) {
      unroll<2>([&](auto h) __attribute__((always_inline)) { f(n, h); });
    });
  }

  // Starts with the product of the biases.
  Tile(
      const Panel& panel,
      int64_t groups,
      const Int8Rows& x,
      bool first,
      const float* tile,
      int64_t ld
  ) {
    __m256 totals[N][2];
    each([&](auto n, auto h) __attribute__((always_inline)) {
      totals[n.value][h.value] =
          first ? _mm256_setzero_ps()
                : _mm256_loadu_ps(tile + n.value * ld + 8 * h.value);
    });
    for (int64_t g = 0; g < groups; ++g) {
      __m256 biases[2] = {
          _mm256_load_ps(panel.biases + g * 16),
          _mm256_load_ps(panel.biases + g * 16 + 8)};
      unroll<N>([&](auto n) __attribute__((always_inline)) {
        __m256 sum = _mm256_broadcast_ss(x.sum + n.value * x.ld_scale + g);
        unroll<2>([&](auto h) __attribute__((always_inline)) {
          __m256& total = totals[n.value][h.value];
          total = _mm256_fmadd_ps(biases[h.value], sum, total);
        });
      });
    }
    each([&](auto n, auto h) __attribute__((always_inline)) {
      _mm256_store_ps(at[n.value] + 8 * h.value, totals[n.value][h.value]);
    });
  }

  // Adds a group's products.
  __attribute__((always_inline)) void add(
      const float* scales, const float* scales_x, const __m256i (&dots)[N][2]
  ) {
    // There are too few registers for the results, but the compiler would
    // try, and store them twice.
    asm volatile("" : : : "memory");
    __m256 weights[2] = {_mm256_load_ps(scales), _mm256_load_ps(scales + 8)};
    unroll<N>([&](auto n) __attribute__((always_inline)) {
      __m256 activations = _mm256_broadcast_ss(scales_x + n.value);
      unroll<2>([&](auto h) __attribute__((always_inline)) {
        float* to = at[n.value] + 8 * h.value;
        __m256 product = _mm256_mul_ps(
            _mm256_cvtepi32_ps(dots[n.value][h.value]), weights[h.value]
        );
        _mm256_store_ps(
            to, _mm256_fmadd_ps(product, activations, _mm256_load_ps(to))
        );
      });
    });
  }

  void store(float* tile, int64_t ld) const {
    each([&](auto n, auto h) __attribute__((always_inline)) {
      _mm256_storeu_ps(
          tile + n.value * ld + 8 * h.value,
          _mm256_load_ps(at[n.value] + 8 * h.value)
      );
    });
  }
};

// Bytes: sums of 8 times two products of 15 * 127 fit into 16 bits, or of 4
// times two of 24 * 127, so a group is cut into Parts of 4 * Steps columns.
template <int N, int Parts, int Steps>
void byte_tile(
    const Panel& panel,
    int64_t groups,
    const int8_t* q,
    int64_t ld_q,
    const Scales<N>& scales_x,
    Tile<N>& tile
) {
  const auto* codes = static_cast<const std::byte*>(panel.codes);
  const float* scales = panel.scales;
  __m256i ones = _mm256_set1_epi16(1);
  for (int64_t g = 0; g < groups; ++g) {
    __m256i dots[N][2];
    Tile<N>::each([&](auto n, auto h) __attribute__((always_inline)) {
      dots[n.value][h.value] = _mm256_setzero_si256();
    });
    for (int part = 0; part < Parts; ++part) {
      __m256i sums[N][2];
      Tile<N>::each([&](auto n, auto h) __attribute__((always_inline)) {
        sums[n.value][h.value] = _mm256_setzero_si256();
      });
      unroll<Steps>([&](auto j) __attribute__((always_inline)) {
        __m256i first = load_32(codes + 64 * j.value);
        __m256i second = load_32(codes + 64 * j.value + 32);
        unroll<N>([&](auto n) __attribute__((always_inline)) {
          int32_t four;
          __builtin_memcpy(&four, q + n.value * ld_q + 4 * j.value, 4);
          __m256i x = _mm256_set1_epi32(four);
          add_byte_products(sums[n.value][0], first, x);
          add_byte_products(sums[n.value][1], second, x);
        });
      });
      codes += 64 * Steps;
      q += 4 * Steps;
      Tile<N>::each([&](auto n, auto h) __attribute__((always_inline)) {
        __m256i wide = _mm256_madd_epi16(sums[n.value][h.value], ones);
        __m256i& dot = dots[n.value][h.value];
        dot = Parts == 1 ? wide : _mm256_add_epi32(dot, wide);
      });
    }
    tile.add(scales + g * 16, scales_x.at[g], dots);
  }
}

// 16 bits: q holds the activations widened.
template <int N>
void wide_tile(
    const Panel& panel,
    int group,
    int64_t groups,
    const int16_t* q,
    int64_t ld_q,
    const Scales<N>& scales_x,
    Tile<N>& tile
) {
  const auto* codes = static_cast<const std::byte*>(panel.codes);
  const float* scales = panel.scales;
  for (int64_t g = 0; g < groups; ++g) {
    __m256i dots[N][2];
    Tile<N>::each([&](auto n, auto h) __attribute__((always_inline)) {
      dots[n.value][h.value] = _mm256_setzero_si256();
    });
    for (int k = 0; k < group; k += 8) {
      unroll<4>([&](auto j) __attribute__((always_inline)) {
        __m256i first = load_32(codes + 64 * j.value);
        __m256i second = load_32(codes + 64 * j.value + 32);
        unroll<N>([&](auto n) __attribute__((always_inline)) {
          int32_t two;
          __builtin_memcpy(&two, q + n.value * ld_q + 2 * j.value, 4);
          __m256i x = _mm256_set1_epi32(two);
          add_wide_products(dots[n.value][0], first, x);
          add_wide_products(dots[n.value][1], second, x);
        });
      });
      codes += 256;
      q += 8;
    }
    tile.add(scales + g * 16, scales_x.at[g], dots);
  }
}

// f for as many rows at once as there are registers for.
template <typename F>
__attribute__((always_inline)) inline void for_tiles(int64_t count, F f) {
  int64_t row = 0;
  for (; row + 6 <= count; row += 6) {
    f(row, Constant<6>());
  }
  if (row + 4 <= count) {
    f(row, Constant<4>());
    row += 4;
  }
  if (row + 2 <= count) {
    f(row, Constant<2>());
    row += 2;
  }
  if (row < count) {
    f(row, Constant<1>());
  }
}

void widen(const int8_t* q, int64_t cols, int16_t* out) {
  for (int64_t i = 0; i < cols; i += 16) {
    _mm256_store_si256(
        reinterpret_cast<__m256i*>(out + i),
        _mm256_cvtepi8_epi16(load_16(q + i))
    );
  }
}

template <int N>
void float_tile(
    const float* values,
    int64_t cols,
    const float* x,
    int64_t ldx,
    bool first,
    float* tile,
    int64_t ld_tile
) {
  __m256 sums[N][2];
  Tile<N>::each([&](auto n, auto h) __attribute__((always_inline)) {
    sums[n.value][h.value] =
        first ? _mm256_setzero_ps()
              : _mm256_loadu_ps(tile + n.value * ld_tile + 8 * h.value);
  });
  for (int64_t i = 0; i < cols; ++i) {
    __m256 w[2] = {
        _mm256_load_ps(values + i * 16), _mm256_load_ps(values + i * 16 + 8)};
    unroll<N>([&](auto n) __attribute__((always_inline)) {
      __m256 v = _mm256_broadcast_ss(x + n.value * ldx + i);
      unroll<2>([&](auto h) __attribute__((always_inline)) {
        __m256& total = sums[n.value][h.value];
        total = _mm256_fmadd_ps(w[h.value], v, total);
      });
    });
  }
  Tile<N>::each([&](auto n, auto h) __attribute__((always_inline)) {
    _mm256_storeu_ps(
        tile + n.value * ld_tile + 8 * h.value, sums[n.value][h.value]
    );
  });
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
  for_transposed(
      cols / format.group,
      8,
      [&](int64_t lane, int64_t i) {
        const std::byte* row =
            span.scales + clamp_row(span, lane) * format.scale_bytes;
        int64_t left = cols / format.group - i;
        return _mm256_castps_si256(
            load_scales<true>(format.type, format.factor, row + first + i, left)
        );
      },
      [&](int64_t half, int64_t i, const __m256i(&v)[8]) {
        for (int64_t j = 0; j < 8 && i + j < cols / format.group; ++j) {
          int64_t at = (i + j) * 16 + half * 8;
          __m256 scale = _mm256_castsi256_ps(v[j]);
          _mm256_store_ps(panel.scales + at, scale);
          _mm256_store_ps(panel.biases + at, block_bias(scale));
        }
      }
  );
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
  int64_t groups = cols / format.group;
  for_tiles(count, [&](int64_t row, auto rows) {
    constexpr int kRows = rows.value;
    const int8_t* q = x.q + row * x.ld_q;
    alignas(32) int16_t wide[kRows][kPanelCols + 16];
    if (format.bits > 4) {
      for (int n = 0; n < kRows; ++n) {
        widen(q + n * x.ld_q, cols, wide[n]);
      }
    }
    Int8Rows from{
        q,
        x.scale + row * x.ld_scale,
        x.sum + row * x.ld_scale,
        x.ld_q,
        x.ld_scale};
    Scales<kRows> scales(from, groups);
    for (int p = 0; p < count_panels; ++p) {
      float* to = tile + row * ld_tile + p * 16;
      Tile<kRows> result(panels[p], groups, from, first, to, ld_tile);
      if (format.bits > 4) {
        wide_tile<kRows>(
            panels[p],
            format.group,
            groups,
            wide[0],
            kPanelCols + 16,
            scales,
            result
        );
      } else if (format.coding == Coding::e2m1) {
        auto function = format.group == 16 ? byte_tile<kRows, 1, 4>
                                           : byte_tile<kRows, 2, 4>;
        function(panels[p], groups, q, x.ld_q, scales, result);
      } else {
        with_group(format.group, [&](auto group) {
          constexpr int kParts = group.value / 32;
          byte_tile<kRows, kParts, 8>(
              panels[p], groups, q, x.ld_q, scales, result
          );
        });
      }
      result.store(to, ld_tile);
    }
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
  for_tiles(count, [&](int64_t row, auto rows) {
    for (int p = 0; p < count_panels; ++p) {
      float_tile<rows.value>(
          static_cast<const float*>(panels[p].codes),
          cols,
          x + row * ldx,
          ldx,
          first,
          tile + row * ld_tile + p * 16,
          ld_tile
      );
    }
  });
}

}  // namespace mlxcel::backend::cpu::avx2
