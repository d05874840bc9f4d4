#include "mlxcel/backend/cpu/matmul_avx2.h"

/// One to a few rows of activations, weights as they stream from memory.
namespace mlxcel::backend::cpu::avx2 {

namespace {

// How far ahead of the codes in use memory is asked for.
constexpr int64_t kAhead = 1024;

// Has the compiler load a value once: it would repeat the load for each use.
__attribute__((always_inline)) inline void keep(__m256i& value) {
  asm("" : "+x"(value));
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
  __m256 at[2][T];

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

// What the products of every width share: the part of the scales, eight
// groups at a time.
template <int T, bool kBlock>
class Int8Product {
 public:
  Int8Product(const RowFormat& format, const Int8Rows& x, int64_t first)
      : type_(format.type),
        factor_(format.factor),
        cols_(format.cols),
        groups_(format.cols / format.group),
        x_(x) {
    x_.q += first * x.ld_q;
    x_.scale += first * x.ld_scale;
    x_.sum += first * x.ld_scale;
    alignas(32) int32_t mask[8];
    for (int i = 0; i < 8; ++i) {
      mask[i] = i >= 8 - groups_ % 8 ? -1 : 0;
    }
    rest_ = _mm256_castsi256_ps(load_32(mask));
  }

 protected:
  // Adds the product of the biases and gives that of the scales.
  __attribute__((always_inline)) Pairs<T> scales(Cursor& at, Pairs<T>& sums)
      const {
    Pairs<T> factors;
    unroll<2>([&](auto r) __attribute__((always_inline)) {
      __m256 scale = load_scales<kBlock>(type_, factor_, at.scales[r.value]);
      __m256 bias = biases(scale, at.biases[r.value], 8);
      at.scales[r.value] += 8 * scale_bytes<kBlock>(type_);
      at.biases[r.value] += 8 * scale_bytes<kBlock>(type_);
      unroll<T>([&](auto t) __attribute__((always_inline)) {
        int64_t row = t.value * x_.ld_scale;
        __m256& sum = sums.at[r.value][t.value];
        factors.at[r.value][t.value] =
            _mm256_mul_ps(scale, _mm256_loadu_ps(at.scale + row));
        sum = _mm256_fmadd_ps(bias, _mm256_loadu_ps(at.sum + row), sum);
      });
    });
    at.scale += 8;
    at.sum += 8;
    return factors;
  }

  // The last groups, fewer than eight: in the upper lanes of a register that
  // ends where they do, or, if the row has no eight, in the lower lanes.
  // `first` is the lane of the first one.
  __attribute__((always_inline)) Pairs<T> last_scales(
      Cursor& at, int& first, Pairs<T>& sums
  ) const {
    int64_t count = groups_ % 8;
    if (groups_ < 8) {
      first = 0;
      return few_scales(at, sums);
    }
    first = static_cast<int>(8 - count);
    Pairs<T> factors;
    int64_t back = first * scale_bytes<kBlock>(type_);
    unroll<2>([&](auto r) __attribute__((always_inline)) {
      __m256 scale =
          load_scales<kBlock>(type_, factor_, at.scales[r.value] - back);
      __m256 bias = biases(scale, at.biases[r.value] - back, 8);
      unroll<T>([&](auto t) __attribute__((always_inline)) {
        int64_t row = t.value * x_.ld_scale - first;
        __m256& sum = sums.at[r.value][t.value];
        factors.at[r.value][t.value] =
            _mm256_mul_ps(scale, _mm256_loadu_ps(at.scale + row));
        __m256 rest = _mm256_and_ps(_mm256_loadu_ps(at.sum + row), rest_);
        sum = _mm256_fmadd_ps(bias, rest, sum);
      });
    });
    return factors;
  }

  __attribute__((noinline)) Pairs<T> few_scales(Cursor& at, Pairs<T>& sums)
      const {
    Pairs<T> factors;
    for (int r = 0; r < 2; ++r) {
      __m256 scale = load_scales<kBlock>(type_, factor_, at.scales[r], groups_);
      __m256 bias = biases(scale, at.biases[r], groups_);
      for (int t = 0; t < T; ++t) {
        int64_t row = t * x_.ld_scale;
        factors.at[r][t] =
            _mm256_mul_ps(scale, _mm256_loadu_ps(at.scale + row));
        sums.at[r][t] =
            _mm256_fmadd_ps(bias, _mm256_loadu_ps(at.sum + row), sums.at[r][t]);
      }
    }
    return factors;
  }

  __attribute__((always_inline)) __m256 biases(
      __m256 scale, const std::byte* from, int64_t count
  ) const {
    if constexpr (kBlock) {
      return block_bias(scale);
    } else {
      return load_values(type_, from, count);
    }
  }

  ScaleType type_;
  float factor_;
  int64_t cols_;
  int64_t groups_;
  Int8Rows x_;
  __m256 rest_;
};

__attribute__((always_inline)) inline void add(
    __m256& sum, __m256i dot, __m256 factor
) {
  sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), factor, sum);
}

// 4 bit: 64 codes in one register, their halves against even and odd
// activations.
template <int T, int Group, bool kBlock>
class NibbleProduct : public Int8Product<T, kBlock> {
 public:
  NibbleProduct(const RowFormat& format, const Int8Rows& x, int64_t first)
      : Int8Product<T, kBlock>(format, x, first) {
    alignas(32) int32_t lane[8];
    for (int i = 0; i < 8; ++i) {
      lane[i] = 8 * i / Group;
    }
    lanes_ = load_32(lane);
  }

  // The sums before they are added over the lanes.
  __attribute__((always_inline)) Pairs<T> run(const Row* rows) const {
    Pairs<T> sums;
    Pairs<T>::each([&](auto r, auto t) __attribute__((always_inline)) {
      sums.at[r.value][t.value] = _mm256_setzero_ps();
    });
    Cursor at(rows, this->x_);
    int64_t left = this->cols_;
    for (; left >= 8 * Group; left -= 8 * Group) {
      Pairs<T> factors = this->scales(at, sums);
      Pairs<T> lower = spread(factors, 0);
      unroll<kSteps / 2>([&](auto j) __attribute__((always_inline)) {
        step(at, lower, lane_of<j.value>, sums);
      });
      Pairs<T> upper = Group == 32 ? lower : spread(factors, 1);
      unroll<kSteps / 2>([&](auto j) __attribute__((always_inline)) {
        constexpr int at_half = Group == 32 ? kSteps / 2 : 0;
        step(at, upper, lane_of<at_half + j.value>, sums);
      });
    }
    if (left > 0) {
      rest(at, left, sums);
    }
    return sums;
  }

 private:
  // Codes between two conversions to float: two registers of a group of 128,
  // whose products still fit into 16 bits, otherwise one.
  static constexpr int kStep = Group == 128 ? 128 : 64;
  static constexpr int kSteps = 8 * Group / kStep;

  template <int I>
  static constexpr auto lane_of = [](__m256 v) __attribute__((always_inline)) {
    return Group == 16 ? v : _mm256_permute_ps(v, I * 0x55);
  };

  // Factors arranged so that a lane of each half is wanted by all lanes of
  // that half: for 32 the even and the odd groups, otherwise four groups in
  // both halves. For 16 four groups, each in the two lanes that want it.
  __attribute__((always_inline)) static Pairs<T> spread(
      const Pairs<T>& factors, int half
  ) {
    Pairs<T> result;
    Pairs<T>::each([&](auto r, auto t) __attribute__((always_inline)) {
      __m256 v = factors.at[r.value][t.value];
      __m256& to = result.at[r.value][t.value];
      if constexpr (Group == 32) {
        to = _mm256_permutevar8x32_ps(
            v, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7)
        );
      } else if constexpr (Group == 16) {
        __m256i lanes = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
        to = _mm256_permutevar8x32_ps(
            v, _mm256_add_epi32(lanes, _mm256_set1_epi32(4 * half))
        );
      } else {
        to = half == 0 ? _mm256_permute2f128_ps(v, v, 0x00)
                       : _mm256_permute2f128_ps(v, v, 0x11);
      }
    });
    return result;
  }

  __attribute__((always_inline)) void rest(
      Cursor& at, int64_t left, Pairs<T>& sums
  ) const {
    int first = 0;
    Pairs<T> factors = this->last_scales(at, first, sums);
    __m256i index = _mm256_add_epi32(lanes_, _mm256_set1_epi32(first));
    auto pick = [&](__m256 v) __attribute__((always_inline)) {
      return _mm256_permutevar8x32_ps(v, index);
    };
    for (; left >= kStep; left -= kStep) {
      step(at, factors, pick, sums);
      index = _mm256_add_epi32(index, _mm256_set1_epi32(kStep / Group));
    }
    if (left > 0) {
      __m256i packed[2] = {
          _mm256_zextsi128_si256(load_16(at.codes[0])),
          _mm256_zextsi128_si256(load_16(at.codes[1]))};
      __m256i dots[2][T];
      dot<true>(at, packed, dots);
      add_all(dots, factors, pick, sums);
    }
  }

  template <typename Pick>
  __attribute__((always_inline)) void step(
      Cursor& at, const Pairs<T>& factors, Pick pick, Pairs<T>& sums
  ) const {
    __m256i dots[2][T];
    unroll<kStep / 64>([&](auto c) __attribute__((always_inline)) {
      __m256i packed[2] = {load_32(at.codes[0]), load_32(at.codes[1])};
      unroll<2>([&](auto r) __attribute__((always_inline)) {
        _mm_prefetch(at.codes[r.value] + kAhead, _MM_HINT_T1);
        keep(packed[r.value]);
        at.codes[r.value] += 32;
      });
      dot<c.value == 0>(at, packed, dots);
      at.q += 64;
    });
    add_all(dots, factors, pick, sums);
  }

  // Sums of eight products in 16 bits.
  template <bool First>
  __attribute__((always_inline)) void dot(
      const Cursor& at, const __m256i (&packed)[2], __m256i (&dots)[2][T]
  ) const {
    __m256i nibble = _mm256_set1_epi8(15);
    __m256i low[2];
    __m256i high[2];
    unroll<2>([&](auto r) __attribute__((always_inline)) {
      low[r.value] =
          nibble_codes<kBlock>(_mm256_and_si256(packed[r.value], nibble));
      high[r.value] = nibble_codes<kBlock>(
          _mm256_and_si256(_mm256_srli_epi16(packed[r.value], 4), nibble)
      );
    });
    unroll<T>([&](auto t) __attribute__((always_inline)) {
      const int8_t* q = at.q + t.value * this->x_.ld_q;
      __m256i even = load_32(q);
      __m256i odd = load_32(q + 32);
      keep(even);
      keep(odd);
      unroll<2>([&](auto r) __attribute__((always_inline)) {
        __m256i sum = _mm256_add_epi16(
            _mm256_maddubs_epi16(low[r.value], even),
            _mm256_maddubs_epi16(high[r.value], odd)
        );
        __m256i& total = dots[r.value][t.value];
        total = First ? sum : _mm256_add_epi16(total, sum);
      });
    });
  }

  template <typename Pick>
  __attribute__((always_inline)) static void add_all(
      const __m256i (&dots)[2][T],
      const Pairs<T>& factors,
      Pick pick,
      Pairs<T>& sums
  ) {
    __m256i ones = _mm256_set1_epi16(1);
    Pairs<T>::each([&](auto r, auto t) __attribute__((always_inline)) {
      add(sums.at[r.value][t.value],
          _mm256_madd_epi16(dots[r.value][t.value], ones),
          pick(factors.at[r.value][t.value]));
    });
  }

  __m256i lanes_;
};

// Any other width: 32 codes are spread over the bytes of a register.
template <int T, int Bits>
class ByteProduct : public Int8Product<T, false> {
 public:
  ByteProduct(const RowFormat& format, const Int8Rows& x, int64_t first)
      : Int8Product<T, false>(format, x, first), group_(format.group) {}

  __attribute__((always_inline)) Pairs<T> run(const Row* rows) const {
    Pairs<T> sums;
    Pairs<T>::each([&](auto r, auto t) __attribute__((always_inline)) {
      sums.at[r.value][t.value] = _mm256_setzero_ps();
    });
    Cursor at(rows, this->x_);
    int64_t left = this->groups_;
    for (; left >= 8; left -= 8) {
      Pairs<T> factors = this->scales(at, sums);
      groups(at, 8, 0, factors, sums);
    }
    if (left > 0) {
      int first = 0;
      Pairs<T> factors = this->last_scales(at, first, sums);
      groups(at, left, first, factors, sums);
    }
    return sums;
  }

 private:
  __attribute__((always_inline)) void groups(
      Cursor& at,
      int64_t count,
      int first,
      const Pairs<T>& factors,
      Pairs<T>& sums
  ) const {
    __m256i index = _mm256_set1_epi32(first);
    for (int64_t g = 0; g < count; ++g) {
      __m256i dots[2][T];
      chunk<true>(at, dots);
      for (int64_t i = 32; i < group_; i += 32) {
        chunk<false>(at, dots);
      }
      Pairs<T>::each([&](auto r, auto t) __attribute__((always_inline)) {
        add(sums.at[r.value][t.value],
            dots[r.value][t.value],
            _mm256_permutevar8x32_ps(factors.at[r.value][t.value], index));
      });
      index = _mm256_add_epi32(index, _mm256_set1_epi32(1));
    }
  }

  template <bool First>
  __attribute__((always_inline)) void chunk(Cursor& at, __m256i (&dots)[2][T])
      const {
    const std::byte* p[2] = {at.codes[0], at.codes[1]};
    unroll<2>([&](auto r) __attribute__((always_inline)) {
      _mm_prefetch(p[r.value] + kAhead, _MM_HINT_T1);
      at.codes[r.value] += 4 * Bits;
    });
    __m256i products[2][T];
    if constexpr (Bits == 8) {
      wide_products(at, p, products);
    } else {
      byte_products(at, p, products);
    }
    at.q += 32;
    Pairs<T>::each([&](auto r, auto t) __attribute__((always_inline)) {
      __m256i& dot = dots[r.value][t.value];
      dot = First ? products[r.value][t.value]
                  : _mm256_add_epi32(dot, products[r.value][t.value]);
    });
  }

  // Codes of 8 bits: the sum of two products would not fit into 16 bits.
  __attribute__((always_inline)) void wide_products(
      const Cursor& at, const std::byte* const (&p)[2], __m256i (&out)[2][T]
  ) const {
    unroll<2>([&](auto half) __attribute__((always_inline)) {
      __m256i codes[2];
      unroll<2>([&](auto r) __attribute__((always_inline)) {
        codes[r.value] =
            _mm256_cvtepu8_epi16(load_16(p[r.value] + 16 * half.value));
      });
      unroll<T>([&](auto t) __attribute__((always_inline)) {
        const int8_t* q = at.q + t.value * this->x_.ld_q + 16 * half.value;
        __m256i x = _mm256_cvtepi8_epi16(load_16(q));
        keep(x);
        unroll<2>([&](auto r) __attribute__((always_inline)) {
          __m256i product = _mm256_madd_epi16(codes[r.value], x);
          __m256i& total = out[r.value][t.value];
          total = half.value == 0 ? product : _mm256_add_epi32(total, product);
        });
      });
    });
  }

  // Up to 6 bits: two products are at most 2 * 63 * 127.
  __attribute__((always_inline)) void byte_products(
      const Cursor& at, const std::byte* const (&p)[2], __m256i (&out)[2][T]
  ) const {
    __m256i ones = _mm256_set1_epi16(1);
    __m256i codes[2] = {codes_.load(p[0]), codes_.load(p[1])};
    unroll<T>([&](auto t) __attribute__((always_inline)) {
      __m256i x = load_32(at.q + t.value * this->x_.ld_q);
      keep(x);
      unroll<2>([&](auto r) __attribute__((always_inline)) {
        out[r.value][t.value] =
            _mm256_madd_epi16(_mm256_maddubs_epi16(codes[r.value], x), ones);
      });
    });
  }

  int64_t group_;
  Codes<Bits> codes_;
};

// Sums over the lanes of eight registers: lane i of the result is that of
// register i. The order of additions is the same for each.
__m256 sum_lanes(const float* p) {
  __m256 w[4];
  unroll<4>([&](auto i) __attribute__((always_inline)) {
    __m256 a = _mm256_load_ps(p + 16 * i.value);
    __m256 b = _mm256_load_ps(p + 16 * i.value + 8);
    w[i.value] =
        _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
  });
  __m256 u[2];
  unroll<2>([&](auto i) __attribute__((always_inline)) {
    __m256d a = _mm256_castps_pd(w[2 * i.value]);
    __m256d b = _mm256_castps_pd(w[2 * i.value + 1]);
    u[i.value] = _mm256_add_ps(
        _mm256_castpd_ps(_mm256_unpacklo_pd(a, b)),
        _mm256_castpd_ps(_mm256_unpackhi_pd(a, b))
    );
  });
  return _mm256_add_ps(
      _mm256_permute2f128_ps(u[0], u[1], 0x20),
      _mm256_permute2f128_ps(u[0], u[1], 0x31)
  );
}

void store_first(float* out, __m256 values, int64_t count) {
  if (count >= 8) {
    _mm256_storeu_ps(out, values);
    return;
  }
  alignas(32) float copy[8];
  _mm256_store_ps(copy, values);
  for (int64_t i = 0; i < count; ++i) {
    out[i] = copy[i];
  }
}

// Rows [i, i + 8) of both spans times T rows of activations from `first` on.
template <int T, typename Product>
void int8_tile(
    const RowFormat& format,
    const RowSpan* spans,
    const Int8Rows& x,
    int64_t i,
    int64_t first
) {
  // Per span and row of activations eight registers, one per row.
  alignas(32) float partial[2][T][64];
  Product product(format, x, first);
  int64_t counts[2];
  for (int s = 0; s < 2; ++s) {
    int64_t left = spans[s].rows - i;
    counts[s] = left < 0 ? 0 : left < 8 ? left : 8;
  }
  // Where one span is shorter, the other's row is multiplied twice.
  int64_t longest = counts[0] > counts[1] ? counts[0] : counts[1];
  for (int64_t j = 0; j < longest; ++j) {
    Row rows[2] = {
        row_at(format, spans[j < counts[0] ? 0 : 1], i + j),
        row_at(format, spans[j < counts[1] ? 1 : 0], i + j)};
    Pairs<T> sums = product.run(rows);
    Pairs<T>::each([&](auto r, auto t) __attribute__((always_inline)) {
      _mm256_store_ps(
          partial[r.value][t.value] + 8 * j, sums.at[r.value][t.value]
      );
    });
  }
  for (int s = 0; s < 2; ++s) {
    for (int t = 0; t < T && counts[s] > 0; ++t) {
      store_first(
          spans[s].out + (first + t) * spans[s].ld_out + i,
          sum_lanes(partial[s][t]),
          counts[s]
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
  for (int64_t i = 0; i < rows; i += 8) {
    int64_t t = 0;
    for (; t + 2 <= count; t += 2) {
      int8_tile<2, Product<2>>(format, spans, x, i, t);
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
  return bits == 4 ? Order::split64 : Order::natural;
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

}  // namespace mlxcel::backend::cpu::avx2
