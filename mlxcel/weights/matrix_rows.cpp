#include "mlxcel/weights/matrix_rows.h"

#include <fmt/format.h>

#include <cstring>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/os.h"
#include "mlxcel/weights/affine_groups.h"
#include "mlxcel/weights/small_floats.h"

namespace mlxcel {

namespace {

// The largest group of a format that can be bound.
constexpr int64_t kLargestGroup = 128;

std::span<const std::byte> checked_bytes(
    const Weight& plane, const std::string& name
) {
  std::span<const std::byte> bytes = plane.bytes();
  auto wanted = checked_mul(
      static_cast<uint64_t>(plane.elements()),
      static_cast<uint64_t>(dtype_size(plane.dtype))
  );
  if (!wanted || bytes.size() != *wanted) {
    fail(
        ErrorCode::internal,
        fmt::format(
            "[weights] {} {}: has {} bytes",
            name,
            plane.describe(),
            bytes.size()
        )
    );
  }
  return bytes;
}

float float_at(DType dtype, const std::byte* plane, int64_t index) {
  switch (dtype) {
    case DType::f32:
      return load_le<float>(plane + 4 * index);
    case DType::f16:
      return f16_to_float(load_le<uint16_t>(plane + 2 * index));
    default:
      return bf16_to_float(load_le<uint16_t>(plane + 2 * index));
  }
}

void read_dense(DType dtype, const std::byte* from, int64_t count, float* out) {
  if (dtype == DType::f32) {
    std::memcpy(out, from, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    out[i] = float_at(dtype, from, i);
  }
}

std::span<const std::byte> part(
    std::span<const std::byte> plane, int64_t rows, int64_t begin, int64_t end
) {
  size_t row = rows == 0 ? 0 : plane.size() / static_cast<size_t>(rows);
  return plane.subspan(
      static_cast<size_t>(begin) * row, static_cast<size_t>(end - begin) * row
  );
}

// Pages that can be had again from a file.
void give_back(const Weight& plane, std::span<const std::byte> bytes) {
  if (plane.source->file() != nullptr) {
    os::wont_need(bytes.data(), bytes.size());
  }
}

}  // namespace

MatrixRows::MatrixRows(const LinearWeight& weight)
    : weight_(weight),
      codes_(checked_bytes(weight.codes, weight.path + ".weight")) {
  if (weight.scales) {
    scales_ = checked_bytes(*weight.scales, weight.path + ".scales");
  }
  if (weight.biases) {
    biases_ = checked_bytes(*weight.biases, weight.path + ".biases");
  }
}

void MatrixRows::read(int64_t row, float* out) const {
  switch (weight_.format.mode) {
    case QuantMode::dense:
      return read_dense(
          weight_.format.dtype,
          code_bytes(row, row + 1).data(),
          weight_.cols,
          out
      );
    case QuantMode::affine:
      return read_affine(row, out);
    default:
      return read_blocks(row, out);
  }
}

void MatrixRows::read_affine(int64_t row, float* out) const {
  int64_t group = weight_.format.group;
  int64_t groups = weight_.cols / group;
  DType dtype = weight_.format.dtype;
  int64_t bits = weight_.format.bits;
  const std::byte* packed = code_bytes(row, row + 1).data();
  uint8_t codes[kLargestGroup];
  for (int64_t g = 0; g < groups; ++g) {
    unpack_codes(packed, weight_.format.bits, group, codes);
    float scale = float_at(dtype, scales_.data(), row * groups + g);
    float bias = float_at(dtype, biases_.data(), row * groups + g);
    for (int64_t i = 0; i < group; ++i) {
      out[i] = scale * static_cast<float>(codes[i]) + bias;
    }
    packed += group * bits / 8;
    out += group;
  }
}

void MatrixRows::read_blocks(int64_t row, float* out) const {
  const auto& scale_table =
      weight_.format.mode == QuantMode::nvfp4 ? e4m3_values() : e8m0_values();
  std::span<const float> table = e4m3_values();
  if (weight_.format.bits == 4) {
    table = e2m1_values();
  }
  int64_t group = weight_.format.group;
  const std::byte* packed = code_bytes(row, row + 1).data();
  uint8_t codes[kLargestGroup];
  for (std::byte byte : scale_bytes(row, row + 1)) {
    unpack_codes(packed, weight_.format.bits, group, codes);
    float scale =
        scale_table[static_cast<uint8_t>(byte)] * weight_.global_scale;
    for (int64_t i = 0; i < group; ++i) {
      out[i] = table[codes[i]] * scale;
    }
    packed += group * weight_.format.bits / 8;
    out += group;
  }
}

void MatrixRows::read_codes(int64_t row, uint8_t* out) const {
  unpack_codes(
      code_bytes(row, row + 1).data(), weight_.format.bits, weight_.cols, out
  );
}

std::span<const std::byte> MatrixRows::code_bytes(int64_t begin, int64_t end)
    const {
  return part(codes_, weight_.rows, begin, end);
}

std::span<const std::byte> MatrixRows::scale_bytes(int64_t begin, int64_t end)
    const {
  return part(scales_, weight_.rows, begin, end);
}

std::span<const std::byte> MatrixRows::bias_bytes(int64_t begin, int64_t end)
    const {
  return part(biases_, weight_.rows, begin, end);
}

void MatrixRows::release(int64_t begin, int64_t end) const {
  give_back(weight_.codes, code_bytes(begin, end));
  if (weight_.scales) {
    give_back(*weight_.scales, scale_bytes(begin, end));
  }
  if (weight_.biases) {
    give_back(*weight_.biases, bias_bytes(begin, end));
  }
}

}  // namespace mlxcel
