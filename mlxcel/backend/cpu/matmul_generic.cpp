#include <algorithm>
#include <cmath>
#include <cstring>

#include "mlxcel/backend/cpu/block_float.h"
#include "mlxcel/backend/cpu/matmul_finish.h"
#include "mlxcel/backend/cpu/matmul_kernels.h"
#include "mlxcel/backend/cpu/simd_generic.h"
#include "mlxcel/core/numbers.h"

/// Portable versions of every kernel: what the others are compared with.
namespace mlxcel::backend::cpu {

namespace {

float load_value(ScaleType type, const std::byte* plane, int64_t index) {
  switch (type) {
    case ScaleType::f32:
      return load_le<float>(plane + 4 * index);
    case ScaleType::f16:
      return f16_to_float(load_le<uint16_t>(plane + 2 * index));
    case ScaleType::bf16:
      return bf16_to_float(load_le<uint16_t>(plane + 2 * index));
    case ScaleType::e8m0:
    case ScaleType::e4m3:
      return block_scale(type, std::to_integer<uint8_t>(plane[index]));
  }
  return 0;
}

// Codes lie in one little-endian stream of bits; none spans three bytes.
int load_code(const std::byte* row, int bits, int64_t index) {
  int64_t bit = index * bits;
  int64_t byte = bit / 8;
  int shift = static_cast<int>(bit % 8);
  int value = std::to_integer<int>(row[byte]);
  if (shift + bits > 8) {
    value |= std::to_integer<int>(row[byte + 1]) << 8;
  }
  return (value >> shift) & ((1 << bits) - 1);
}

// What int8 kernels take a code for: unsigned, with a scale and a bias.
int unsigned_code(const RowFormat& format, const std::byte* row, int64_t i) {
  int code = load_code(row, format.bits, i);
  return format.coding == Coding::e2m1 ? kShiftedE2M1[code] : code;
}

struct GroupScale {
  float scale;
  float bias;
};

GroupScale group_scale(const RowFormat& format, const RowSpan& row, int64_t g) {
  float scale = load_value(format.type, row.scales, g);
  if (format.coding == Coding::e2m1) {
    scale *= format.factor;
    return {0.5F * scale, -0.5F * kE2M1Zero * scale};
  }
  return {scale, load_value(format.type, row.biases, g)};
}

RowSpan row_of(const RowFormat& format, const RowSpan& span, int64_t row) {
  RowSpan one = span;
  one.codes += row * format.code_bytes;
  if (format.bits > 0) {
    one.scales += row * format.scale_bytes;
    one.biases += row * format.scale_bytes;
  }
  one.rows = 1;
  return one;
}

void quantize(
    const float* x,
    int64_t cols,
    int group,
    Order,
    int8_t* q,
    float* scale,
    float* sum
) {
  int64_t groups = cols / group;
  for (int64_t g = 0; g < groups; ++g) {
    const float* v = x + g * group;
    // Compared as bits, so that a NaN is larger than all and shows.
    uint32_t top = 0;
    for (int i = 0; i < group; ++i) {
      top = std::max(top, load_le<uint32_t>(v + i) & 0x7fffffffU);
    }
    auto limit = load_le<float>(&top);
    float inverse =
        limit > 1e-35F && std::isfinite(limit) ? 127.0F / limit : 0.0F;
    int total = 0;
    for (int i = 0; i < group; ++i) {
      float scaled = v[i] * inverse;
      int code =
          std::isfinite(scaled) ? static_cast<int>(std::nearbyint(scaled)) : 0;
      q[g * group + i] = static_cast<int8_t>(code);
      total += code;
    }
    scale[g] = limit / 127.0F;
    sum[g] = scale[g] * static_cast<float>(total);
  }
  std::fill(q + cols, q + padded_codes(cols), int8_t{0});
  std::fill(scale + groups, scale + padded_scales(groups), 0.0F);
  std::fill(sum + groups, sum + padded_scales(groups), 0.0F);
}

Order decode_order(int) {
  return Order::natural;
}

void decode_int8(
    const RowFormat& format,
    const RowSpan* spans,
    const Int8Rows& x,
    int64_t count,
    std::byte* scratch
) {
  auto* codes = reinterpret_cast<int8_t*>(scratch);
  int64_t groups = format.cols / format.group;
  for (const RowSpan* span = spans; span != spans + 2; ++span) {
    for (int64_t r = 0; r < span->rows; ++r) {
      RowSpan row = row_of(format, *span, r);
      for (int64_t i = 0; i < format.cols; ++i) {
        codes[i] = static_cast<int8_t>(unsigned_code(format, row.codes, i));
      }
      for (int64_t t = 0; t < count; ++t) {
        const int8_t* q = x.q + t * x.ld_q;
        float total = 0;
        for (int64_t g = 0; g < groups; ++g) {
          int dot = 0;
          for (int64_t i = g * format.group; i < (g + 1) * format.group; ++i) {
            dot += static_cast<uint8_t>(codes[i]) * q[i];
          }
          GroupScale of = group_scale(format, row, g);
          total += static_cast<float>(dot) *
                       (of.scale * x.scale[t * x.ld_scale + g]) +
                   of.bias * x.sum[t * x.ld_scale + g];
        }
        span->out[t * span->ld_out + r] = total;
      }
    }
  }
}

void dequantize(
    const RowFormat& format,
    const RowSpan& row,
    int64_t begin,
    int64_t cols,
    float* out
) {
  for (int64_t i = begin; i < begin + cols; ++i) {
    if (format.bits == 0) {
      out[i - begin] = load_value(format.type, row.codes, i);
    } else if (format.coding != Coding::affine) {
      int code = load_code(row.codes, format.bits, i);
      out[i - begin] = block_value(format.coding, static_cast<uint8_t>(code)) *
                       (load_value(format.type, row.scales, i / format.group) *
                        format.factor);
    } else {
      int64_t g = i / format.group;
      out[i - begin] =
          load_value(format.type, row.scales, g) *
              static_cast<float>(load_code(row.codes, format.bits, i)) +
          load_value(format.type, row.biases, g);
    }
  }
}

void decode_float(
    const RowFormat& format,
    const RowSpan* spans,
    const float* x,
    int64_t ldx,
    int64_t count,
    std::byte* scratch
) {
  auto* values = reinterpret_cast<float*>(scratch);
  for (const RowSpan* span = spans; span != spans + 2; ++span) {
    for (int64_t r = 0; r < span->rows; ++r) {
      dequantize(format, row_of(format, *span, r), 0, format.cols, values);
      for (int64_t t = 0; t < count; ++t) {
        // Four sums, so that rounding errors do not all meet in one.
        float total[4] = {};
        for (int64_t i = 0; i < format.cols; ++i) {
          total[i % 4] += values[i] * x[t * ldx + i];
        }
        span->out[t * span->ld_out + r] =
            (total[0] + total[1]) + (total[2] + total[3]);
      }
    }
  }
}

void pack_int8(const RowFormat& format, const RowSpan& span, int64_t begin, int64_t cols, const Panel& panel, std::byte*) {
  auto* codes = static_cast<uint8_t*>(panel.codes);
  for (int64_t lane = 0; lane < kPanelRows; ++lane) {
    RowSpan row = row_of(format, span, std::min(lane, span.rows - 1));
    for (int64_t i = 0; i < cols; ++i) {
      codes[i * kPanelRows + lane] =
          static_cast<uint8_t>(unsigned_code(format, row.codes, begin + i));
    }
    for (int64_t g = 0; g < cols / format.group; ++g) {
      GroupScale of = group_scale(format, row, begin / format.group + g);
      panel.scales[g * kPanelRows + lane] = of.scale;
      panel.biases[g * kPanelRows + lane] = of.bias;
    }
  }
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
  for (int p = 0; p < count_panels; ++p) {
    const auto* codes = static_cast<const uint8_t*>(panels[p].codes);
    for (int64_t t = 0; t < count; ++t) {
      float* out = tile + t * ld_tile + p * kPanelRows;
      if (first) {
        std::fill(out, out + kPanelRows, 0.0F);
      }
      for (int64_t g = 0; g < groups; ++g) {
        int dot[kPanelRows] = {};
        for (int64_t i = g * format.group; i < (g + 1) * format.group; ++i) {
          int value = x.q[t * x.ld_q + i];
          for (int64_t lane = 0; lane < kPanelRows; ++lane) {
            dot[lane] += codes[i * kPanelRows + lane] * value;
          }
        }
        for (int64_t lane = 0; lane < kPanelRows; ++lane) {
          int64_t at = g * kPanelRows + lane;
          out[lane] += static_cast<float>(dot[lane]) * panels[p].scales[at] *
                           x.scale[t * x.ld_scale + g] +
                       panels[p].biases[at] * x.sum[t * x.ld_scale + g];
        }
      }
    }
  }
}

void pack_float(
    const RowFormat& format,
    const RowSpan& span,
    int64_t begin,
    int64_t cols,
    const Panel& panel,
    std::byte* scratch
) {
  auto* values = reinterpret_cast<float*>(scratch);
  auto* out = static_cast<float*>(panel.codes);
  for (int64_t lane = 0; lane < kPanelRows; ++lane) {
    RowSpan row = row_of(format, span, std::min(lane, span.rows - 1));
    dequantize(format, row, begin, cols, values);
    for (int64_t i = 0; i < cols; ++i) {
      out[i * kPanelRows + lane] = values[i];
    }
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
  for (int p = 0; p < count_panels; ++p) {
    const auto* values = static_cast<const float*>(panels[p].codes);
    for (int64_t t = 0; t < count; ++t) {
      float* out = tile + t * ld_tile + p * kPanelRows;
      if (first) {
        std::fill(out, out + kPanelRows, 0.0F);
      }
      for (int64_t i = 0; i < cols; ++i) {
        for (int64_t lane = 0; lane < kPanelRows; ++lane) {
          out[lane] += values[i * kPanelRows + lane] * x[t * ldx + i];
        }
      }
    }
  }
}

void finish(const FinishJob& job) {
  Finish<SimdGeneric>::run(job);
}

}  // namespace

const MatmulKernels& generic_matmul_kernels() {
  static constexpr MatmulKernels table = {
      quantize,
      decode_order,
      decode_int8,
      decode_float,
      pack_int8,
      multiply_int8,
      pack_float,
      multiply_float,
      dequantize,
      finish,
  };
  return table;
}

}  // namespace mlxcel::backend::cpu
