#include "mlxcel/backend/cpu/matmul.h"

#include <algorithm>
#include <cstring>

#include "mlxcel/backend/cpu/matmul_plan.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"

namespace mlxcel::backend::cpu {

namespace {

ScaleType scale_type(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return ScaleType::f16;
    case DType::bf16:
      return ScaleType::bf16;
    default:
      return ScaleType::f32;
  }
}

ScaleType scale_type(const WeightFormat& format) {
  switch (format.mode) {
    case QuantMode::mxfp4:
    case QuantMode::mxfp8:
      return ScaleType::e8m0;
    case QuantMode::nvfp4:
      return ScaleType::e4m3;
    default:
      return scale_type(format.dtype);
  }
}

Coding coding_of(const WeightFormat& format) {
  switch (format.mode) {
    case QuantMode::mxfp4:
    case QuantMode::nvfp4:
      return Coding::e2m1;
    case QuantMode::mxfp8:
      return Coding::e4m3;
    default:
      return Coding::affine;
  }
}

Function function_of(std::optional<Activation> activation) {
  if (!activation) {
    return Function::none;
  }
  switch (*activation) {
    case Activation::silu:
      return Function::silu;
    case Activation::gelu:
      return Function::gelu;
    case Activation::gelu_tanh:
      return Function::gelu_tanh;
    case Activation::relu:
      return Function::relu;
  }
  return Function::none;
}

const std::byte* plane(
    const std::optional<Weight>& weight,
    const char* name,
    int64_t bytes,
    const LinearWeight& source
) {
  if (!weight || std::ssize(weight->bytes()) < bytes) {
    fail(
        ErrorCode::internal,
        source.path + "." + name + ": holds fewer than " +
            std::to_string(bytes) + " bytes"
    );
  }
  return weight->bytes().data();
}

CpuLinear::Part make_part(const LinearWeight& source) {
  if (!is_mlx_format(source.format)) {
    fail(
        ErrorCode::unsupported,
        source.path + ": the cpu backend has no kernels for " +
            source.format.describe()
    );
  }
  CpuLinear::Part part;
  part.format = source.format;
  part.rows = source.rows;
  part.source = source;
  RowFormat format = row_format(source.format, source.cols);
  part.codes =
      plane(source.codes, "weight", source.rows * format.code_bytes, source);
  if (format.bits > 0) {
    int64_t bytes = source.rows * format.scale_bytes;
    part.scales = plane(source.scales, "scales", bytes, source);
    part.biases = format.coding == Coding::affine
                      ? plane(source.biases, "biases", bytes, source)
                      : part.scales;  // never read
  }
  if (source.bias) {
    part.bias = to_float(*source.bias);
  }
  return part;
}

}  // namespace

RowFormat row_format(const WeightFormat& format, int64_t cols) {
  RowFormat result{};
  result.type = scale_type(format);
  result.coding = coding_of(format);
  result.cols = cols;
  result.factor = 1.0F;
  if (format.mode == QuantMode::dense) {
    result.code_bytes = cols * dtype_size(format.dtype);
    return result;
  }
  result.bits = format.bits;
  result.group = format.group;
  result.code_bytes = cols * format.bits / 8;
  result.scale_bytes = cols / format.group * dtype_size(format.dtype);
  return result;
}

RowSpan part_rows(
    const CpuLinear::Part& part,
    const RowFormat& format,
    int64_t first,
    int64_t rows
) {
  RowSpan span{};
  span.codes = part.codes + first * format.code_bytes;
  if (format.bits > 0) {
    span.scales = part.scales + first * format.scale_bytes;
    span.biases = part.biases + first * format.scale_bytes;
  }
  span.rows = rows;
  return span;
}

bool has_kernels(Operation operation, const WeightFormat& format) {
  switch (operation) {
    case Operation::linear:
    case Operation::embed:
    case Operation::logits:
      return is_mlx_format(format);
    case Operation::experts:
      return is_mlx_format(format) && format.bits != 1;
    case Operation::norm:
      return format.mode == QuantMode::dense && is_weight_float(format.dtype);
    case Operation::attend:
      return true;
  }
  return false;
}

std::shared_ptr<const CpuLinear> make_cpu_linear(const WeightGroup& group) {
  auto linear = std::make_shared<CpuLinear>();
  auto plan = std::make_shared<LinearPlan>();
  for (const LinearWeight& source : group.parts) {
    CpuLinear::Part part = make_part(source);
    part.first = linear->rows;
    linear->rows += part.rows;
    linear->cols = source.cols;
    plan->formats.push_back(row_format(source.format, source.cols));
    plan->formats.back().factor = source.global_scale;
    plan->biased = plan->biased || !part.bias.empty();
    linear->parts.push_back(std::move(part));
  }
  linear->plan = std::move(plan);
  return linear;
}

const MatmulKernels& matmul_kernels(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::generic:
      break;
    case Isa::avx2:
      return avx2_matmul_kernels();
    case Isa::avx512:
      return avx512_matmul_kernels();
  }
#endif
  (void)isa;
  return generic_matmul_kernels();
}

bool MatmulJob::same_kernel(int a, int b) const {
  const RowFormat& left = format(a);
  const RowFormat& right = format(b);
  return a == b || (left.bits == right.bits && left.group == right.group &&
                    left.type == right.type && left.coding == right.coding &&
                    left.factor == right.factor);
}

void MatmulJob::quantize(Order (*order_of)(int bits)) {
  slot.used = 0;
  slot.activations.assign(weight.parts.size(), 0);
  for (int i = 0; i < parts(); ++i) {
    if (!is_int8(i)) {
      continue;
    }
    int group = format(i).group;
    Order order = order_of(format(i).bits);
    size_t at = 0;
    while (at < slot.used && (slot.quantized[at].group != group ||
                              slot.quantized[at].order != order)) {
      ++at;
    }
    slot.activations[static_cast<size_t>(i)] = static_cast<int>(at);
    if (at < slot.used) {
      continue;
    }
    if (++slot.used > slot.quantized.size()) {
      slot.quantized.emplace_back();
    }
    slot.quantized[at].group = group;
    slot.quantized[at].order = order;
    quantize(slot.quantized[at]);
  }
}

void MatmulJob::quantize(Quantized& target) {
  // Not a multiple of 4096: the same column of several rows would fall into
  // one set of the cache.
  int64_t ld_q = padded_codes(weight.cols) + 64;
  int64_t ld_scale = padded_scales(weight.cols / target.group);
  std::byte* memory = target.memory.get(count * (ld_q + 2 * 4 * ld_scale));
  auto* q = reinterpret_cast<int8_t*>(memory);
  auto* scale = reinterpret_cast<float*>(memory + count * ld_q);
  float* sum = scale + count * ld_scale;
  target.rows = {q, scale, sum, ld_q, ld_scale};
  auto convert = [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      kernels.quantize(
          x + t * ldx,
          weight.cols,
          target.group,
          target.order,
          q + t * ld_q,
          scale + t * ld_scale,
          sum + t * ld_scale
      );
    }
  };
  // A row takes a fraction of a microsecond.
  if (count * weight.cols < 16384) {
    convert(0, count);
    return;
  }
  pool.run([&](int thread, int threads) {
    convert(count * thread / threads, count * (thread + 1) / threads);
  });
}

void MatmulJob::store(
    const Block& block,
    int64_t begin,
    int64_t end,
    const float* a,
    const float* b,
    int64_t ld
) const {
  const CpuLinear::Part& source = part(block.part);
  int64_t column = source.first + block.first;
  FinishJob finish{};
  finish.function =
      function_of(epilogue.gate ? epilogue.gate : epilogue.activation);
  finish.count = end - begin;
  finish.n = block.rows;
  finish.a = a;
  finish.b = b;
  finish.ld = ld;
  finish.out = y + begin * ldy + column;
  finish.ld_out = ldy;
  if (!source.bias.empty()) {
    finish.bias_a = source.bias.data() + block.first;
  }
  if (b != nullptr && !part(1).bias.empty()) {
    finish.bias_b = part(1).bias.data() + block.first;
  }
  if (epilogue.residual != nullptr) {
    finish.ld_residual = epilogue.ld_residual;
    finish.residual = epilogue.residual + begin * epilogue.ld_residual + column;
  }
  kernels.finish(finish);
}

MatmulScratch::MatmulScratch() : impl_(std::make_unique<Impl>()) {}
MatmulScratch::~MatmulScratch() = default;

void linear(
    const CpuLinear& weight,
    const float* x,
    int64_t ldx,
    int64_t count,
    Family family,
    ActivationMode mode,
    Isa isa,
    const MatmulEpilogue& epilogue,
    float* y,
    int64_t ldy,
    MatmulScratch& scratch,
    ThreadPool& pool
) {
  MatmulScratch::Impl& memory = scratch.impl();
  if (memory.threads.size() < static_cast<size_t>(pool.size())) {
    memory.threads.resize(static_cast<size_t>(pool.size()));
  }
  for (int64_t begin = 0; begin < count; begin += kMaxRows) {
    MatmulEpilogue shifted = epilogue;
    if (shifted.residual != nullptr) {
      shifted.residual += begin * shifted.ld_residual;
    }
    MatmulJob job{
        weight,
        x + begin * ldx,
        ldx,
        std::min(kMaxRows, count - begin),
        mode,
        matmul_kernels(isa),
        shifted,
        y + begin * ldy,
        ldy,
        memory,
        memory.take_slot(),
        pool,
    };
    family == Family::decode ? run_decode(job) : run_prefill(job);
  }
}

void gather_rows(
    const LinearWeight& table, std::span<const int32_t> ids, float* out
) {
  static const MatmulKernels& kernels = matmul_kernels(chosen_isa());
  CpuLinear::Part part;
  part.codes = table.codes.bytes().data();
  if (table.scales) {
    part.scales = table.scales->bytes().data();
    part.biases = table.biases ? table.biases->bytes().data() : part.scales;
  }
  RowFormat format = row_format(table.format, table.cols);
  format.factor = table.global_scale;
  for (int32_t id : ids) {
    RowSpan row = part_rows(part, format, id, 1);
    kernels.dequantize(format, row, 0, table.cols, out);
    out += table.cols;
  }
}

}  // namespace mlxcel::backend::cpu
