#include "mlxcel/weights/mla_projection.h"

#include <fmt/format.h>

#include "mlxcel/core/error.h"
#include "mlxcel/weights/weight_slice.h"

namespace mlxcel {

namespace {

LinearWeight rows_of(const LinearWeight& whole, int64_t first, int64_t count) {
  LinearWeight part = whole;
  part.rows = count;
  part.codes = slice_rows(whole.codes, first, count);
  for (auto plane :
       {&LinearWeight::scales, &LinearWeight::biases, &LinearWeight::bias}) {
    if (whole.*plane) {
      part.*plane = slice_rows(*(whole.*plane), first, count);
    }
  }
  return part;
}

LinearWeight bind(
    const WeightMap& weights,
    const std::string& path,
    int64_t rows,
    int64_t rank,
    const QuantConfig& quantization
) {
  try {
    return bind_linear(weights, path, rows, rank, quantization);
  } catch (const Error& error) {
    fail(
        error.code(), fmt::format("{} (kv_lora_rank {})", error.message(), rank)
    );
  }
}

}  // namespace

std::vector<MlaHead> split_mla_projection(
    const WeightMap& weights,
    const std::string& path,
    int64_t heads,
    int64_t nope,
    int64_t value,
    int64_t rank,
    const QuantConfig& quantization
) {
  constexpr int64_t kMost = 1 << 20;
  for (int64_t size : {heads, nope, value, rank}) {
    if (size < 1 || size > kMost) {
      fail(
          ErrorCode::invalid_input,
          fmt::format(
              "[mla] {}: {} heads of {} + {} rows and kv_lora_rank {}: each "
              "must be from 1 to {}",
              path,
              heads,
              nope,
              value,
              rank,
              kMost
          )
      );
    }
  }
  LinearWeight whole =
      bind(weights, path, heads * (nope + value), rank, quantization);
  if (whole.format.mode == QuantMode::affine && whole.format.bits == 1) {
    fail(
        ErrorCode::unsupported,
        fmt::format(
            "[mla] {}: 1-bit projections are not supported (in {})",
            path,
            whole.codes.source->origin()
        )
    );
  }
  std::vector<MlaHead> parts;
  parts.reserve(static_cast<size_t>(heads));
  for (int64_t head = 0; head < heads; ++head) {
    int64_t first = head * (nope + value);
    parts.push_back(
        {rows_of(whole, first, nope), rows_of(whole, first + nope, value)}
    );
  }
  return parts;
}

}  // namespace mlxcel
