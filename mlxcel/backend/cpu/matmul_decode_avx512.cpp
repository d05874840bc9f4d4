#include "mlxcel/backend/cpu/matmul_avx512.h"

/// One to a few rows of activations, weights as they stream from memory.
namespace mlxcel::backend::cpu::avx512 {

namespace {

// How far ahead of the codes in use memory is asked for.
constexpr int64_t kAhead = 1024;

// Has the compiler load a value once: it would repeat the load for each use,
// and loads are what these kernels have most of.
__attribute__((always_inline)) inline void keep(__m512i& value) {
  asm("" : "+v"(value));
}

struct Row {
  const std::byte* codes;
  const std::byte* scales;
  const std::byte* biases;
};

Row row_at(const RowFormat& format, const RowSpan& span, int64_t i) {
  return {
      span.codes + i * format.code_bytes,
      span.scales + i * format.scale_bytes,
      span.biases + i * format.scale_bytes,
  };
}

// One register per pair of one of two rows of weights and one of T rows of
// activations.
template <int T>
struct Pairs {
  __m512 at[2][T];

  template <typename F>
  __attribute__((always_inline)) static void each(F&& f) {
    unroll<2>([&](auto r) __attribute__((always_inline)) {
      unroll<T>([&](auto t) __attribute__((always_inline)) { f(r, t); });
    });
  }
};

// Where the next codes of two rows and of the activations are.
struct Cursor {
  const std::byte* codes[2];
  const std::byte* scales[2];
  const std::byte* biases[2];
  const int8_t* q;
  const float* scale;
  const float* sum;

  Cursor(const Row* rows, const Int8Rows& x)
      : codes{rows[0].codes, rows[1].codes},
        scales{rows[0].scales, rows[1].scales},
        biases{rows[0].biases, rows[1].biases},
        q(x.q),
        scale(x.scale),
        sum(x.sum) {}
};

// What the products of every width share: the part of the scales.
template <int T, bool kBlock>
class Int8Product {
 public:
  Int8Product(const RowFormat& format, const Int8Rows& x, int64_t first)
      : type_(format.type), factor_(format.factor), cols_(format.cols), x_(x) {
    x_.q += first * x.ld_q;
    x_.scale += first * x.ld_scale;
    x_.sum += first * x.ld_scale;
  }

 protected:
  // Sixteen groups: adds the product of the biases and gives that of the
  // scales.
  __attribute__((always_inline)) Pairs<T> scales(
      Cursor& at, __mmask16 mask, Pairs<T>& sums
  ) const {
    Pairs<T> factors;
    unroll<2>([&](auto r) __attribute__((always_inline)) {
      __m512 scale =
          load_scales<kBlock>(type_, factor_, at.scales[r.value], mask);
      __m512 bias = biases(scale, at.biases[r.value], mask);
      at.scales[r.value] += 16 * scale_bytes<kBlock>(type_);
      at.biases[r.value] += 16 * scale_bytes<kBlock>(type_);
      unroll<T>([&](auto t) __attribute__((always_inline)) {
        int64_t row = t.value * x_.ld_scale;
        __m512& sum = sums.at[r.value][t.value];
        factors.at[r.value][t.value] =
            _mm512_mul_ps(scale, _mm512_loadu_ps(at.scale + row));
        sum = _mm512_fmadd_ps(bias, _mm512_loadu_ps(at.sum + row), sum);
      });
    });
    at.scale += 16;
    at.sum += 16;
    return factors;
  }

  __attribute__((always_inline)) static void add(
      __m512& sum, __m512i dot, __m512i index, __m512 factors
  ) {
    sum = _mm512_fmadd_ps(
        _mm512_cvtepi32_ps(dot), _mm512_permutexvar_ps(index, factors), sum
    );
  }

  __attribute__((always_inline)) __m512 biases(
      __m512 scale, const std::byte* from, __mmask16 mask
  ) const {
    if constexpr (kBlock) {
      return block_bias(scale);
    } else {
      return load_values(type_, from, mask);
    }
  }

  ScaleType type_;
  float factor_;
  int64_t cols_;
  Int8Rows x_;
};

// 4 bit: 128 codes in one register, their halves against even and odd
// activations.
template <int T, int Group, bool kBlock>
class NibbleProduct : public Int8Product<T, kBlock> {
 public:
  NibbleProduct(const RowFormat& format, const Int8Rows& x, int64_t first)
      : Int8Product<T, kBlock>(format, x, first) {
    alignas(64) int32_t lane[16];
    alignas(64) int32_t joint[16];
    for (int i = 0; i < 16; ++i) {
      lane[i] = 8 * i / Group;
      joint[i] = i % 8 * 8 / Group + i / 8 * 8;
    }
    lanes_ = _mm512_load_si512(lane);
    joint_ = _mm512_load_si512(joint);
  }

  // The sums before they are added over the lanes.
  __attribute__((always_inline)) Pairs<T> run(const Row* rows) const {
    Pairs<T> sums;
    Pairs<T>::each([&](auto r, auto t) __attribute__((always_inline)) {
      sums.at[r.value][t.value] = _mm512_setzero_ps();
    });
    Cursor at(rows, this->x_);
    int64_t left = this->cols_;
    for (; left >= 16 * Group; left -= 16 * Group) {
      block(at, sums);
    }
    if (left > 8 * Group) {
      long_rest(at, left, sums);
    } else if (left > 0) {
      short_rest(at, left, sums);
    }
    return sums;
  }

 private:
  __attribute__((always_inline)) void block(Cursor& at, Pairs<T>& sums) const {
    Pairs<T> factors = this->scales(at, 0xffff, sums);
    constexpr int kChunks = 16 * Group / 128;
    // More than eight at once would only make the code long.
    constexpr int kUnrolled = kChunks < 8 ? kChunks : 8;
    __m512i index = lanes_;
    for (int c = 0; c < kChunks; c += kUnrolled) {
      unroll<kUnrolled>([&](auto) __attribute__((always_inline)) {
        chunk(at, ~__mmask64{0}, index, index, factors, sums);
        index = next(index);
      });
    }
  }

  // 9 to 15 groups.
  __attribute__((always_inline)) void long_rest(
      Cursor& at, int64_t left, Pairs<T>& sums
  ) const {
    auto mask = static_cast<__mmask16>((1U << (left / Group)) - 1);
    Pairs<T> factors = this->scales(at, mask, sums);
    __m512i index = lanes_;
    for (; left > 0; left -= 128) {
      chunk(at, byte_mask(left / 2), index, index, factors, sums);
      index = next(index);
    }
  }

  // Up to 8 groups: those of both rows fit into one register.
  __attribute__((always_inline)) void short_rest(
      Cursor& at, int64_t left, Pairs<T>& sums
  ) const {
    auto mask = static_cast<__mmask8>((1U << (left / Group)) - 1);
    __m512 scale = both_scales(at.scales, mask);
    __m512 bias = kBlock ? block_bias(scale) : both_scales(at.biases, mask);
    __m512 joint[T];
    __m512 factors[T];
    unroll<T>([&](auto t) __attribute__((always_inline)) {
      int64_t row = t.value * this->x_.ld_scale;
      factors[t.value] = _mm512_mul_ps(
          scale, _mm512_broadcast_f32x8(_mm256_loadu_ps(at.scale + row))
      );
      joint[t.value] = _mm512_mul_ps(
          bias, _mm512_broadcast_f32x8(_mm256_loadu_ps(at.sum + row))
      );
    });
    Pairs<T> both;
    Pairs<T>::each([&](auto r, auto t) __attribute__((always_inline)) {
      both.at[r.value][t.value] = factors[t.value];
    });
    __m512i lower = lanes_;
    __m512i pair = joint_;
    for (; left > 64; left -= 128) {
      __m512i upper = _mm512_add_epi32(lower, _mm512_set1_epi32(8));
      chunk(at, byte_mask(left / 2), lower, upper, both, sums);
      lower = next(lower);
      pair = next(pair);
    }
    if (left > 0) {
      half_chunk(at, left, pair, factors, joint);
    }
    unroll<T>([&](auto t) __attribute__((always_inline)) {
      __m512& first = sums.at[0][t.value];
      __m512& second = sums.at[1][t.value];
      first = _mm512_add_ps(first, _mm512_maskz_mov_ps(0x00ff, joint[t.value]));
      second = _mm512_add_ps(
          second,
          _mm512_zextps256_ps512(_mm512_extractf32x8_ps(joint[t.value], 1))
      );
    });
  }

  // Eight values of both rows.
  __attribute__((always_inline)) __m512 both_scales(
      const std::byte* const (&from)[2], __mmask8 mask
  ) const {
    return _mm512_insertf32x8(
        load_scales<kBlock>(this->type_, this->factor_, from[0], mask),
        _mm512_castps512_ps256(
            load_scales<kBlock>(this->type_, this->factor_, from[1], mask)
        ),
        1
    );
  }

  // 128 codes of both rows. `lower`, `upper`: which of the factors the lanes
  // of the first and the second row want.
  __attribute__((always_inline)) void chunk(
      Cursor& at,
      __mmask64 mask,
      __m512i lower,
      __m512i upper,
      const Pairs<T>& factors,
      Pairs<T>& sums
  ) const {
    __m512i low[2];
    __m512i high[2];
    unroll<2>([&](auto r) __attribute__((always_inline)) {
      _mm_prefetch(at.codes[r.value] + kAhead, _MM_HINT_T1);
      __m512i packed = _mm512_maskz_loadu_epi8(mask, at.codes[r.value]);
      keep(packed);
      split(packed, low[r.value], high[r.value]);
      at.codes[r.value] += 64;
    });
    unroll<T>([&](auto t) __attribute__((always_inline)) {
      const int8_t* q = at.q + t.value * this->x_.ld_q;
      __m512i even = _mm512_loadu_si512(q);
      __m512i odd = _mm512_loadu_si512(q + 64);
      keep(even);
      keep(odd);
      unroll<2>([&](auto r) __attribute__((always_inline)) {
        this->add(
            sums.at[r.value][t.value],
            dot(low[r.value], high[r.value], even, odd),
            r.value == 0 ? lower : upper,
            factors.at[r.value][t.value]
        );
      });
    });
    at.q += 128;
  }

  // Up to 64 codes of each row, side by side in one register.
  __attribute__((always_inline)) void half_chunk(
      Cursor& at,
      int64_t left,
      __m512i index,
      const __m512 (&factors)[T],
      __m512 (&joint)[T]
  ) const {
    auto mask = static_cast<__mmask32>((uint64_t{1} << (left / 2)) - 1);
    __m512i packed = _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm256_maskz_loadu_epi8(mask, at.codes[0])),
        _mm256_maskz_loadu_epi8(mask, at.codes[1]),
        1
    );
    __m512i low;
    __m512i high;
    split(packed, low, high);
    unroll<T>([&](auto t) __attribute__((always_inline)) {
      const auto* q =
          reinterpret_cast<const __m256i*>(at.q + t.value * this->x_.ld_q);
      __m512i even = _mm512_broadcast_i64x4(_mm256_loadu_si256(q));
      __m512i odd = _mm512_broadcast_i64x4(_mm256_loadu_si256(q + 2));
      this->add(
          joint[t.value], dot(low, high, even, odd), index, factors[t.value]
      );
    });
  }

  __attribute__((always_inline)) static void split(
      __m512i packed, __m512i& low, __m512i& high
  ) {
    __m512i nibble = _mm512_set1_epi8(15);
    low = nibble_codes<kBlock>(_mm512_and_si512(packed, nibble));
    high = nibble_codes<kBlock>(
        _mm512_and_si512(_mm512_srli_epi16(packed, 4), nibble)
    );
  }

  __attribute__((always_inline)) static __m512i dot(
      __m512i low, __m512i high, __m512i even, __m512i odd
  ) {
    __m512i sum = _mm512_dpbusd_epi32(_mm512_setzero_si512(), low, even);
    return _mm512_dpbusd_epi32(sum, high, odd);
  }

  // The groups of the next 128 codes.
  __attribute__((always_inline)) static __m512i next(__m512i index) {
    return _mm512_add_epi32(index, _mm512_set1_epi32(128 / Group));
  }

  __m512i lanes_;
  __m512i joint_;
};

// Any other width: 64 codes are spread over the bytes of a register.
template <int T, int Bits>
class ByteProduct : public Int8Product<T, false> {
 public:
  ByteProduct(const RowFormat& format, const Int8Rows& x, int64_t first)
      : Int8Product<T, false>(format, x, first),
        group_(format.group),
        shift_(_mm_cvtsi32_si128(
            __builtin_ctz(static_cast<unsigned>(format.group))
        )) {
    alignas(64) int32_t lane[16];
    for (int i = 0; i < 16; ++i) {
      lane[i] = 4 * i;
    }
    lanes_ = _mm512_load_si512(lane);
  }

  __attribute__((always_inline)) Pairs<T> run(const Row* rows) const {
    Pairs<T> sums;
    Pairs<T>::each([&](auto r, auto t) __attribute__((always_inline)) {
      sums.at[r.value][t.value] = _mm512_setzero_ps();
    });
    Cursor at(rows, this->x_);
    int64_t left = this->cols_;
    for (; left >= 16 * group_; left -= 16 * group_) {
      Pairs<T> factors = this->scales(at, 0xffff, sums);
      __m512i column = lanes_;
      for (int i = 0; i < 16 * group_; i += 256) {
        unroll<4>([&](auto) __attribute__((always_inline)) {
          chunk(at, byte_mask(8 * Bits), column, factors, sums);
        });
      }
    }
    if (left > 0) {
      auto mask = static_cast<__mmask16>((1U << (left / group_)) - 1);
      Pairs<T> factors = this->scales(at, mask, sums);
      __m512i column = lanes_;
      for (; left > 0; left -= 64) {
        int64_t codes = left < 64 ? left : 64;
        chunk(at, byte_mask(codes * Bits / 8), column, factors, sums);
      }
    }
    return sums;
  }

 private:
  __attribute__((always_inline)) void chunk(
      Cursor& at,
      __mmask64 mask,
      __m512i& column,
      const Pairs<T>& factors,
      Pairs<T>& sums
  ) const {
    __m512i codes[2];
    unroll<2>([&](auto r) __attribute__((always_inline)) {
      _mm_prefetch(at.codes[r.value] + kAhead, _MM_HINT_T1);
      codes[r.value] = codes_.load(at.codes[r.value], mask);
      at.codes[r.value] += 8 * Bits;
    });
    __m512i index = _mm512_srl_epi32(column, shift_);
    column = _mm512_add_epi32(column, _mm512_set1_epi32(64));
    unroll<T>([&](auto t) __attribute__((always_inline)) {
      __m512i x = _mm512_loadu_si512(at.q + t.value * this->x_.ld_q);
      keep(x);
      unroll<2>([&](auto r) __attribute__((always_inline)) {
        this->add(
            sums.at[r.value][t.value],
            _mm512_dpbusd_epi32(_mm512_setzero_si512(), codes[r.value], x),
            index,
            factors.at[r.value][t.value]
        );
      });
    });
    at.q += 64;
  }

  int64_t group_;
  __m128i shift_;
  __m512i lanes_;
  Codes<Bits> codes_;
};

// Sums over the lanes of sixteen registers: lane i of the result is that of
// register i. The order of additions is the same for each.
__m512 sum_lanes(const float* p) {
  __m512 w[8];
  unroll<8>([&](auto i) __attribute__((always_inline)) {
    __m512 a = _mm512_load_ps(p + 32 * i.value);
    __m512 b = _mm512_load_ps(p + 32 * i.value + 16);
    w[i.value] =
        _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  });
  // u[i]: each 128 bits hold partial sums of registers 4i .. 4i + 3.
  __m512 u[4];
  unroll<4>([&](auto i) __attribute__((always_inline)) {
    __m512d a = _mm512_castps_pd(w[2 * i.value]);
    __m512d b = _mm512_castps_pd(w[2 * i.value + 1]);
    u[i.value] = _mm512_add_ps(
        _mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
        _mm512_castpd_ps(_mm512_unpackhi_pd(a, b))
    );
  });
  auto halves = [](__m512 a, __m512 b) {
    return _mm512_add_ps(
        _mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd)
    );
  };
  return halves(halves(u[0], u[1]), halves(u[2], u[3]));
}

// Rows [i, i + 16) of both spans times T rows of activations from `first` on.
template <int T, typename Product>
void int8_tile(
    const RowFormat& format,
    const RowSpan* spans,
    const Int8Rows& x,
    int64_t i,
    int64_t first
) {
  // Per span and row of activations sixteen registers, one per row.
  alignas(64) float partial[2][T][256];
  Product product(format, x, first);
  int64_t counts[2];
  for (int s = 0; s < 2; ++s) {
    int64_t left = spans[s].rows - i;
    counts[s] = left < 0 ? 0 : left < 16 ? left : 16;
  }
  // Where one span is shorter, the other's row is multiplied twice.
  int64_t longest = counts[0] > counts[1] ? counts[0] : counts[1];
  for (int64_t j = 0; j < longest; ++j) {
    Row rows[2] = {
        row_at(format, spans[j < counts[0] ? 0 : 1], i + j),
        row_at(format, spans[j < counts[1] ? 1 : 0], i + j)};
    Pairs<T> sums = product.run(rows);
    Pairs<T>::each([&](auto r, auto t) __attribute__((always_inline)) {
      _mm512_store_ps(
          partial[r.value][t.value] + 16 * j, sums.at[r.value][t.value]
      );
    });
  }
  for (int s = 0; s < 2; ++s) {
    auto mask = static_cast<__mmask16>((1U << counts[s]) - 1);
    for (int t = 0; t < T && counts[s] > 0; ++t) {
      _mm512_mask_storeu_ps(
          spans[s].out + (first + t) * spans[s].ld_out + i,
          mask,
          sum_lanes(partial[s][t])
      );
    }
  }
}

template <template <int> typename Product>
void int8_rows(
    const RowFormat& format,
    const RowSpan* spans,
    const Int8Rows& x,
    int64_t count
) {
  int64_t rows = spans[0].rows > spans[1].rows ? spans[0].rows : spans[1].rows;
  for (int64_t i = 0; i < rows; i += 16) {
    int64_t t = 0;
    for (; t + 4 <= count; t += 4) {
      int8_tile<4, Product<4>>(format, spans, x, i, t);
    }
    if (t + 2 <= count) {
      int8_tile<2, Product<2>>(format, spans, x, i, t);
      t += 2;
    }
    if (t < count) {
      int8_tile<1, Product<1>>(format, spans, x, i, t);
    }
  }
}

// The products by width and group, with the number of rows left open.
template <int Group, bool kBlock>
struct Nibbles {
  template <int T>
  using Product = NibbleProduct<T, Group, kBlock>;
};
template <int Bits>
struct Bytes {
  template <int T>
  using Product = ByteProduct<T, Bits>;
};

}  // namespace

Order decode_order(int bits) {
  return bits == 4 ? Order::split128 : Order::natural;
}

void decode_int8(const RowFormat& format, const RowSpan* spans, const Int8Rows& x, int64_t count, std::byte*) {
  if (format.coding == Coding::e2m1) {
    auto function = format.group == 16 ? int8_rows<Nibbles<16, true>::Product>
                                       : int8_rows<Nibbles<32, true>::Product>;
    function(format, spans, x, count);
    return;
  }
  if (format.bits == 4) {
    with_group(format.group, [&](auto group) {
      int8_rows<Nibbles<group.value, false>::template Product>(
          format, spans, x, count
      );
    });
    return;
  }
  with_bits(format.bits, [&](auto bits) {
    if constexpr (bits.value != 4) {
      int8_rows<Bytes<bits.value>::template Product>(format, spans, x, count);
    }
  });
}

}  // namespace mlxcel::backend::cpu::avx512
