#include "mlxcel/backend/cpu/block_float_x86.h"
#include "mlxcel/backend/cpu/matmul_avx512.h"
#include "mlxcel/backend/cpu/matmul_finish.h"
#include "mlxcel/backend/cpu/simd_avx512.h"

/// Work on single rows: quantising activations, unpacking weights, epilogues.
namespace mlxcel::backend::cpu {

namespace avx512 {

namespace {

void zero(int8_t* p, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    p[i] = 0;
  }
}

// Of each 128 codes first those with an even index, then the others.
void split(int8_t* q, int64_t cols) {
  alignas(64) uint8_t even[64];
  alignas(64) uint8_t odd[64];
  for (int i = 0; i < 64; ++i) {
    even[i] = static_cast<uint8_t>(2 * i);
    odd[i] = static_cast<uint8_t>(2 * i + 1);
  }
  __m512i evens = _mm512_load_si512(even);
  __m512i odds = _mm512_load_si512(odd);
  for (int64_t i = 0; i < cols; i += 128) {
    __m512i a = _mm512_loadu_si512(q + i);
    __m512i b = _mm512_loadu_si512(q + i + 64);
    _mm512_storeu_si512(q + i, _mm512_permutex2var_epi8(a, evens, b));
    _mm512_storeu_si512(q + i + 64, _mm512_permutex2var_epi8(a, odds, b));
  }
}

// Per lane the largest (or the sum) over the lanes of sixteen registers.
template <typename F>
__m512i combine(const int32_t (&from)[16][16], F f) {
  __m512i v[8];
  unroll<8>([&](auto i) __attribute__((always_inline)) {
    __m512i a = _mm512_load_si512(from[2 * i.value]);
    __m512i b = _mm512_load_si512(from[2 * i.value + 1]);
    v[i.value] = f(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  });
  __m512i u[4];
  unroll<4>([&](auto i) __attribute__((always_inline)) {
    __m512i a = v[2 * i.value];
    __m512i b = v[2 * i.value + 1];
    u[i.value] = f(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
  });
  auto halves = [&](__m512i a, __m512i b) __attribute__((always_inline)) {
    return f(
        _mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd)
    );
  };
  return halves(halves(u[0], u[1]), halves(u[2], u[3]));
}

// `count` groups, at most sixteen; scale and sum get sixteen values.
void quantize_groups(
    const float* x,
    int64_t count,
    int group,
    int8_t* q,
    float* scale,
    float* sum
) {
  alignas(64) int32_t partial[16][16];
  __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  for (int64_t g = 0; g < 16; ++g) {
    // Compared as bits, so that a NaN is larger than all and shows.
    __m512i top = _mm512_setzero_si512();
    for (int i = 0; i < group && g < count; i += 16) {
      __m512i bits = _mm512_loadu_si512(x + g * group + i);
      top = _mm512_max_epu32(top, _mm512_and_si512(bits, magnitude));
    }
    _mm512_store_si512(partial[g], top);
  }
  __m512i top = combine(partial, [](__m512i a, __m512i b) {
    return _mm512_max_epu32(a, b);
  });
  __m512 limit = _mm512_castsi512_ps(top);
  __mmask16 usable =
      _mm512_cmp_ps_mask(limit, _mm512_set1_ps(1e-35F), _CMP_GT_OQ) &
      _mm512_cmplt_epu32_mask(top, _mm512_set1_epi32(0x7f800000));
  alignas(64) float inverse[16];
  _mm512_store_ps(
      inverse, _mm512_maskz_div_ps(usable, _mm512_set1_ps(127.0F), limit)
  );
  for (int64_t g = 0; g < 16; ++g) {
    __m512i total = _mm512_setzero_si512();
    __m512 factor = _mm512_set1_ps(inverse[g]);
    auto mask = static_cast<__mmask16>((usable >> g & 1) != 0 ? 0xffff : 0);
    for (int i = 0; i < group && g < count; i += 16) {
      __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(x + g * group + i), factor);
      __m512i codes = _mm512_maskz_cvtps_epi32(mask, scaled);
      total = _mm512_add_epi32(total, codes);
      _mm_storeu_si128(
          reinterpret_cast<__m128i*>(q + g * group + i),
          _mm512_cvtsepi32_epi8(codes)
      );
    }
    _mm512_store_si512(partial[g], total);
  }
  __m512i total = combine(partial, [](__m512i a, __m512i b) {
    return _mm512_add_epi32(a, b);
  });
  __m512 scales = _mm512_div_ps(limit, _mm512_set1_ps(127.0F));
  _mm512_storeu_ps(scale, scales);
  _mm512_storeu_ps(sum, _mm512_mul_ps(scales, _mm512_cvtepi32_ps(total)));
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
  alignas(64) float scales[16];
  alignas(64) float biases[16];
  int64_t first = 0;  // group of scales[0]
  int64_t known = 0;  // the group behind those loaded
  for (int64_t i = begin; i < end; i += 64, out += 64) {
    int64_t left = end - i < 64 ? end - i : 64;
    if ((i + left - 1) >> shift >= known) {
      first = i >> shift;
      known =
          first + 16 < format.cols >> shift ? first + 16 : format.cols >> shift;
      auto mask = static_cast<__mmask16>(byte_mask(known - first));
      const std::byte* from = row.scales + first * size;
      _mm512_store_ps(scales, load_values(format.type, from, mask));
      from = row.biases + first * size;
      _mm512_store_ps(biases, load_values(format.type, from, mask));
    }
    alignas(64) uint8_t bytes[64];
    _mm512_store_si512(
        bytes, codes.load(row.codes + i * Bits / 8, byte_mask(left * Bits / 8))
    );
    for (int64_t j = 0; j < left; j += 16) {
      int64_t g = ((i + j) >> shift) - first;
      __m512 value = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(
          _mm_load_si128(reinterpret_cast<const __m128i*>(bytes + j))
      ));
      value = _mm512_fmadd_ps(
          value, _mm512_set1_ps(scales[g]), _mm512_set1_ps(biases[g])
      );
      _mm512_storeu_ps(out + j, value);
    }
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
  for (int64_t g = 0; g < groups; g += 16) {
    int64_t count = groups - g < 16 ? groups - g : 16;
    quantize_groups(
        x + g * group, count, group, q + g * group, scale + g, sum + g
    );
  }
  zero(q + cols, padded_codes(cols) - cols);
  if (order == Order::split128) {
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
  for (int64_t i = 0; i < cols; i += 16) {
    auto mask = static_cast<__mmask16>(byte_mask(cols - i));
    _mm512_mask_storeu_ps(
        out + i,
        mask,
        load_values(format.type, row.codes + (begin + i) * size, mask)
    );
  }
}

void finish(const FinishJob& job) {
  Finish<SimdAvx512>::run(job);
}

}  // namespace avx512

const MatmulKernels& avx512_matmul_kernels() {
  static constexpr MatmulKernels table = {
      avx512::quantize,
      avx512::decode_order,
      avx512::decode_int8,
      avx512::decode_float,
      avx512::pack_int8,
      avx512::multiply_int8,
      avx512::pack_float,
      avx512::multiply_float,
      avx512::dequantize,
      avx512::finish,
  };
  return table;
}

}  // namespace mlxcel::backend::cpu
