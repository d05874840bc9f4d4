#include "mlxcel/backend/cpu/block_float_x86.h"
#include "mlxcel/backend/cpu/matmul_avx2.h"
#include "mlxcel/backend/cpu/matmul_finish.h"
#include "mlxcel/backend/cpu/simd_avx2.h"

/// Work on single rows: quantising activations, unpacking weights, epilogues.
namespace mlxcel::backend::cpu {

namespace avx2 {

namespace {

// Per lane f over the lanes of eight registers.
template <typename F>
__m256i combine(const int32_t (&from)[8][8], F f) {
  __m256i v[4];
  unroll<4>([&](auto i) __attribute__((always_inline)) {
    __m256i a = load_32(from[2 * i.value]);
    __m256i b = load_32(from[2 * i.value + 1]);
    v[i.value] = f(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
  });
  __m256i u[2];
  unroll<2>([&](auto i) __attribute__((always_inline)) {
    __m256i a = v[2 * i.value];
    __m256i b = v[2 * i.value + 1];
    u[i.value] = f(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
  });
  return f(
      _mm256_permute2x128_si256(u[0], u[1], 0x20),
      _mm256_permute2x128_si256(u[0], u[1], 0x31)
  );
}

// The largest magnitude of each of `count` groups (at most eight), as bits.
__m256i largest(const float* x, int64_t count, int group) {
  alignas(32) int32_t partial[8][8];
  __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  for (int64_t g = 0; g < 8; ++g) {
    // Compared as bits, so that a NaN is larger than all and shows.
    __m256i top = _mm256_setzero_si256();
    for (int i = 0; i < group && g < count; i += 8) {
      __m256i bits = load_32(x + g * group + i);
      top = _mm256_max_epu32(top, _mm256_and_si256(bits, magnitude));
    }
    _mm256_store_si256(reinterpret_cast<__m256i*>(partial[g]), top);
  }
  return combine(partial, [](__m256i a, __m256i b) {
    return _mm256_max_epu32(a, b);
  });
}

// `count` groups, at most eight; scale and sum get eight values. Step: codes
// that are stored at once, at most a group.
template <int Step>
void quantize_groups(
    const float* x,
    int64_t count,
    int group,
    int8_t* q,
    float* scale,
    float* sum
) {
  __m256i top = largest(x, count, group);
  __m256 limit = _mm256_castsi256_ps(top);
  __m256 usable = _mm256_and_ps(
      _mm256_cmp_ps(limit, _mm256_set1_ps(1e-35F), _CMP_GT_OQ),
      _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(0x7f800000), top)
      )
  );
  alignas(32) float inverse[8];
  alignas(32) int32_t mask[8];
  _mm256_store_ps(
      inverse,
      _mm256_and_ps(usable, _mm256_div_ps(_mm256_set1_ps(127.0F), limit))
  );
  _mm256_store_ps(reinterpret_cast<float*>(mask), usable);
  alignas(32) int32_t partial[8][8];
  // The packs below work on halves and leave fours of codes out of order.
  __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  for (int64_t g = 0; g < 8; ++g) {
    __m256i total = _mm256_setzero_si256();
    __m256 factor = _mm256_set1_ps(inverse[g]);
    __m256i keep = _mm256_set1_epi32(mask[g]);
    for (int i = 0; i < group && g < count; i += Step) {
      __m256i v[Step / 8];
      unroll<Step / 8>([&](auto j) __attribute__((always_inline)) {
        const float* from = x + g * group + i + 8 * j.value;
        v[j.value] = _mm256_and_si256(
            _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(from), factor)),
            keep
        );
        total = _mm256_add_epi32(total, v[j.value]);
      });
      constexpr int kLast = Step / 8 - 2;
      __m256i codes = _mm256_permutevar8x32_epi32(
          _mm256_packs_epi16(
              _mm256_packs_epi32(v[0], v[1]),
              _mm256_packs_epi32(v[kLast], v[kLast + 1])
          ),
          order
      );
      int8_t* to = q + g * group + i;
      if constexpr (Step == 32) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), codes);
      } else {
        _mm_storeu_si128(
            reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(codes)
        );
      }
    }
    _mm256_store_si256(reinterpret_cast<__m256i*>(partial[g]), total);
  }
  __m256i total = combine(partial, [](__m256i a, __m256i b) {
    return _mm256_add_epi32(a, b);
  });
  __m256 scales = _mm256_div_ps(limit, _mm256_set1_ps(127.0F));
  _mm256_storeu_ps(scale, scales);
  _mm256_storeu_ps(sum, _mm256_mul_ps(scales, _mm256_cvtepi32_ps(total)));
}

void zero(int8_t* p, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    p[i] = 0;
  }
}

// Of each 64 codes first those with an even index, then the others.
void split(int8_t* q, int64_t cols) {
  __m256i low = _mm256_set1_epi16(0x00ff);
  for (int64_t i = 0; i < cols; i += 64) {
    __m256i a = load_32(q + i);
    __m256i b = load_32(q + i + 32);
    __m256i even =
        _mm256_packus_epi16(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
    __m256i odd =
        _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
    auto* to = reinterpret_cast<__m256i*>(q + i);
    _mm256_storeu_si256(to, _mm256_permute4x64_epi64(even, 0xd8));
    _mm256_storeu_si256(to + 1, _mm256_permute4x64_epi64(odd, 0xd8));
  }
}

template <int Bits>
void dequantize_bits(
    const RowFormat& format,
    const RowSpan& row,
    int64_t begin,
    int64_t cols,
    float* out
) {
  Codes<Bits> codes;
  int64_t end = begin + cols;
  int shift = __builtin_ctz(static_cast<unsigned>(format.group));
  int64_t size = value_bytes(format.type);
  alignas(32) float scales[8];
  alignas(32) float biases[8];
  int64_t first = 0;  // group of scales[0]
  int64_t known = 0;  // the group behind those loaded
  for (int64_t i = begin; i < end; i += 32, out += 32) {
    if (i >> shift >= known) {
      first = i >> shift;
      int64_t count = (format.cols >> shift) - first;
      known = first + (count < 8 ? count : 8);
      const std::byte* from = row.scales + first * size;
      _mm256_store_ps(scales, load_values(format.type, from, count));
      from = row.biases + first * size;
      _mm256_store_ps(biases, load_values(format.type, from, count));
    }
    __m256 scale = _mm256_set1_ps(scales[(i >> shift) - first]);
    __m256 bias = _mm256_set1_ps(biases[(i >> shift) - first]);
    alignas(32) uint8_t bytes[32];
    _mm256_store_si256(
        reinterpret_cast<__m256i*>(bytes), codes.load(row.codes + i * Bits / 8)
    );
    unroll<4>([&](auto j) __attribute__((always_inline)) {
      __m256 value = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(
          _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes + 8 * j.value))
      ));
      _mm256_storeu_ps(out + 8 * j.value, _mm256_fmadd_ps(value, scale, bias));
    });
  }
}

}  // namespace

void quantize(
    const float* x,
    int64_t cols,
    int group,
    Order order,
    int8_t* q,
    float* scale,
    float* sum
) {
  int64_t groups = cols / group;
  fetch_for_write(q, cols);
  fetch_for_write(scale, groups * 4);
  fetch_for_write(sum, groups * 4);
  for (int64_t g = 0; g < padded_scales(groups); g += 8) {
    int64_t count = groups - g < 8 ? groups - g : 8;
    auto function = group == 16 ? quantize_groups<16> : quantize_groups<32>;
    function(x + g * group, count, group, q + g * group, scale + g, sum + g);
  }
  zero(q + cols, padded_codes(cols) - cols);
  if (order == Order::split64) {
    split(q, cols);
  }
}

void dequantize(
    const RowFormat& format,
    const RowSpan& row,
    int64_t begin,
    int64_t cols,
    float* out
) {
  if (format.coding != Coding::affine) {
    dequantize_block(format, row, begin, cols, out);
    return;
  }
  if (format.bits > 0) {
    with_bits(format.bits, [&](auto bits) {
      dequantize_bits<bits.value>(format, row, begin, cols, out);
    });
    return;
  }
  int size = value_bytes(format.type);
  const std::byte* p = row.codes + begin * size;
  int64_t i = 0;
  for (; i + 8 <= cols; i += 8) {
    _mm256_storeu_ps(out + i, load_values(format.type, p + i * size));
  }
  if (i < cols) {
    alignas(32) float rest[8];
    _mm256_store_ps(rest, load_values(format.type, p + i * size, cols - i));
    __builtin_memcpy(out + i, rest, static_cast<size_t>(cols - i) * 4);
  }
}

void finish(const FinishJob& job) {
  Finish<SimdAvx2>::run(job);
}

}  // namespace avx2

const MatmulKernels& avx2_matmul_kernels() {
  static constexpr MatmulKernels table = {
      avx2::quantize,
      avx2::decode_order,
      avx2::decode_int8,
      avx2::decode_float,
      avx2::pack_int8,
      avx2::multiply_int8,
      avx2::pack_float,
      avx2::multiply_float,
      avx2::dequantize,
      avx2::finish,
  };
  return table;
}

}  // namespace mlxcel::backend::cpu
