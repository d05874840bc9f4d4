#pragma once

#include "mlxcel/backend/cpu/matmul_kernels.h"

/// What the kernels for float32 activations have in common: rows in pairs,
/// quantised ones unpacked first. `Isa` gives
///
///   kRows            rows of activations at a time
///   multiply<T>()    two rows of dense values times T rows of activations:
///                    out[row][t]
///   dequantize()     a row as float32
namespace mlxcel::backend::cpu {

template <typename Isa, int T>
void multiply_pair(
    ScaleType type,
    const std::byte* const (&rows)[2],
    int64_t cols,
    const float* x,
    int64_t ldx,
    float* const (&out)[2],
    const RowSpan* spans
) {
  float values[2][T] = {};
  // The type is known inside each call.
  switch (type) {
    case ScaleType::f32:
      Isa::template multiply<T>(ScaleType::f32, rows, cols, x, ldx, values);
      break;
    case ScaleType::f16:
      Isa::template multiply<T>(ScaleType::f16, rows, cols, x, ldx, values);
      break;
    case ScaleType::bf16:
      Isa::template multiply<T>(ScaleType::bf16, rows, cols, x, ldx, values);
      break;
    default:  // scales only
      break;
  }
  for (int s = 0; s < 2; ++s) {
    for (int t = 0; t < T && out[s] != nullptr; ++t) {
      out[s][t * spans[s].ld_out] = values[s][t];
    }
  }
}

/// decode_float of matmul_kernels.h.
template <typename Isa>
void decode_float_rows(
    const RowFormat& format,
    const RowSpan* spans,
    const float* x,
    int64_t ldx,
    int64_t count,
    std::byte* scratch
) {
  int64_t rows = spans[0].rows > spans[1].rows ? spans[0].rows : spans[1].rows;
  auto* unpacked = reinterpret_cast<float*>(scratch);
  ScaleType type = format.bits > 0 ? ScaleType::f32 : format.type;
  for (int64_t i = 0; i < rows; ++i) {
    const std::byte* pair[2];
    float* out[2];
    for (int s = 0; s < 2; ++s) {
      bool present = i < spans[s].rows;
      const RowSpan& span = spans[present ? s : 1 - s];
      out[s] = present ? span.out + i : nullptr;
      pair[s] = span.codes + i * format.code_bytes;
      if (format.bits > 0) {
        RowSpan one{
            pair[s],
            span.scales + i * format.scale_bytes,
            span.biases + i * format.scale_bytes,
            1,
            nullptr,
            0};
        float* to = unpacked + s * (format.cols + 32);
        Isa::dequantize(format, one, format.cols, to);
        pair[s] = reinterpret_cast<const std::byte*>(to);
      }
    }
    auto advance = [&](int by) {
      for (int s = 0; s < 2; ++s) {
        out[s] = out[s] != nullptr ? out[s] + by * spans[s].ld_out : nullptr;
      }
    };
    int64_t t = 0;
    for (; t + Isa::kRows <= count; t += Isa::kRows) {
      multiply_pair<Isa, Isa::kRows>(
          type, pair, format.cols, x + t * ldx, ldx, out, spans
      );
      advance(Isa::kRows);
    }
    for (; t < count; ++t) {
      multiply_pair<Isa, 1>(
          type, pair, format.cols, x + t * ldx, ldx, out, spans
      );
      advance(1);
    }
  }
}

}  // namespace mlxcel::backend::cpu
