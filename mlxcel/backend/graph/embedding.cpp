#include <fmt/format.h>

#include <cstring>

#include "mlxcel/backend/graph/graph_backend.h"
#include "mlxcel/backend/graph/linear.h"
#include "mlxcel/core/error.h"

namespace mlxcel::backend::graph {

namespace {

/// Rows of a resident matrix; only those asked for are dequantised.
class GraphEmbedding final : public EmbeddingSource {
 public:
  GraphEmbedding(
      Planes planes, int64_t rows, int64_t cols, mx::Dtype type, mx::Stream s
  )
      : planes_(std::move(planes)),
        rows_(rows),
        cols_(cols),
        type_(type),
        stream_(s) {}

  int64_t vocabulary() const override {
    return rows_;
  }
  int64_t width() const override {
    return cols_;
  }
  const std::string& path() const {
    return planes_.path;
  }

  /// [ids, width] in the activations' type.
  mx::array lookup(std::span<const int32_t> ids) const {
    mx::array index(ids.data(), {static_cast<int>(ids.size())}, mx::int32);
    auto rows = [&](const mx::array& plane) {
      return mx::take(plane, index, 0, stream_);
    };
    if (planes_.format.mode == QuantMode::dense) {
      return mx::astype(rows(planes_.codes), type_, stream_);
    }
    mx::array scales = rows(*planes_.scales);
    if (planes_.format.bits == 1) {
      if (type_ == mx::float32) {  // exact: not rounded
        scales = mx::astype(scales, type_, stream_);
      }
      mx::array values = one_bit_values(
          rows(planes_.codes),
          scales,
          rows(*planes_.biases),
          planes_.format.group,
          stream_
      );
      return mx::astype(values, type_, stream_);
    }
    std::optional<mx::array> biases;
    if (planes_.biases) {
      scales = mx::astype(scales, type_, stream_);
      biases = mx::astype(rows(*planes_.biases), type_, stream_);
    }
    mx::array values = mx::dequantize(
        rows(planes_.codes),
        scales,
        biases,
        planes_.format.group,
        planes_.format.bits,
        std::string(quant_mode_name(planes_.format.mode)),
        std::nullopt,
        type_,
        stream_
    );
    if (planes_.global_scale == 1.0F) {
      return values;
    }
    values = mx::multiply(
        mx::astype(values, mx::float32, stream_),
        mx::array(planes_.global_scale),
        stream_
    );
    return mx::astype(values, type_, stream_);
  }

  void gather(std::span<const int32_t> ids, float* out) const override {
    if (ids.empty()) {
      return;
    }
    try {
      mx::array rows = mx::contiguous(
          mx::astype(lookup(ids), mx::float32, stream_), false, stream_
      );
      mx::eval(rows);
      std::memcpy(out, rows.data<float>(), rows.nbytes());
    } catch (...) {
      rethrow(path());
    }
  }

 private:
  Planes planes_;
  int64_t rows_;
  int64_t cols_;
  mx::Dtype type_;
  mx::Stream stream_;
};

void check_ids(
    std::span<const int32_t> ids, int64_t vocabulary, const std::string& path
) {
  for (int32_t id : ids) {
    if (id < 0 || id >= vocabulary) {
      fail(
          ErrorCode::invalid_input,
          fmt::format(
              "{}: token {} is outside the vocabulary of {}",
              path,
              id,
              vocabulary
          )
      );
    }
  }
}

}  // namespace

std::shared_ptr<const EmbeddingSource> GraphBackend::prepare_embedding(
    const LinearWeight& table
) {
  try {
    Planes planes = make_planes(table);
    keep(table);
    note_activation(planes.type);
    count(table);
    mx::Dtype type = numerics_.exact ? mx::float32 : planes.type;
    return std::make_shared<GraphEmbedding>(
        std::move(planes), table.rows, table.cols, type, stream_
    );
  } catch (...) {
    rethrow(table.path);
  }
}

Tensor GraphBackend::embed(const EmbeddingSource& table, float scale) {
  const std::vector<int32_t>& tokens = batch().tokens;
  const auto* resident = dynamic_cast<const GraphEmbedding*>(&table);
  if (resident == nullptr) {
    check_ids(tokens, table.vocabulary(), "[graph] embedding");
    std::vector<float> rows(tokens.size() * table.width());
    table.gather(tokens, rows.data());
    return multiply(import_rows(rows, batch().rows(), table.width()), scale);
  }
  check_ids(tokens, table.vocabulary(), resident->path());
  try {
    return wrap(scaled(resident->lookup(tokens), scale));
  } catch (...) {
    rethrow(resident->path());
  }
}

}  // namespace mlxcel::backend::graph
