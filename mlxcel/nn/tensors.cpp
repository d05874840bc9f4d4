#include "mlxcel/nn/tensors.h"

#include <fmt/format.h>

namespace mlxcel::nn {

namespace {

class TableBuilder {
 public:
  TableBuilder(const TensorNames& names, TensorTable& table)
      : names_(names), table_(table) {}

  void matrix(
      const std::string& path,
      int64_t rows,
      int64_t cols,
      Split split,
      bool bias = false,
      bool required = true
  ) {
    table_.push_back(
        {path + ".weight", {rows, cols}, TensorRole::matrix, required, split}
    );
    if (bias) {
      Split bias_split = split == Split::columns ? Split::replicated : split;
      table_.push_back(
          {path + ".bias", {rows}, TensorRole::vector, true, bias_split}
      );
    }
  }

  void norm(const std::string& path, const NormSpec& spec, int64_t size) {
    table_.push_back({path + ".weight", {size}, TensorRole::vector, true, {}});
    if (spec.kind == backend::NormKind::layer) {
      table_.push_back({path + ".bias", {size}, TensorRole::vector, true, {}});
    }
  }

  void operator()(const AttentionSpec& spec) {
    int64_t queries = spec.heads * spec.head_dim;
    int64_t keys = spec.kv_heads * spec.head_dim;
    matrix(at(names_.query), queries, width, Split::heads, spec.qkv_bias);
    matrix(at(names_.key), keys, width, Split::heads, spec.qkv_bias);
    matrix(at(names_.value), keys, width, Split::heads, spec.qkv_bias);
    matrix(at(names_.output), width, queries, Split::columns, spec.output_bias);
    if (spec.head_norm) {
      norm(at(names_.query_norm), *spec.head_norm, spec.head_dim);
      norm(at(names_.key_norm), *spec.head_norm, spec.head_dim);
    }
  }

  void operator()(const MlpSpec& spec) {
    matrix(at(names_.gate), spec.width, width, Split::rows, spec.bias);
    matrix(at(names_.up), spec.width, width, Split::rows, spec.bias);
    matrix(at(names_.down), width, spec.width, Split::columns, spec.bias);
  }

  void operator()(const MoeSpec& spec) {
    matrix(at(names_.router), spec.experts, width, Split::replicated);
    auto stack = [&](const std::string& path, int64_t rows, int64_t cols) {
      table_.push_back(
          {path + ".weight",
           {spec.experts, rows, cols},
           TensorRole::matrix,
           true,
           Split::experts}
      );
    };
    stack(at(names_.expert_gate), spec.width, width);
    stack(at(names_.expert_up), spec.width, width);
    stack(at(names_.expert_down), width, spec.width);
  }

  void operator()(const NoMixer&) {}
  void operator()(const NoFfn&) {}

  std::string at(const std::string& module) const {
    return layer_path(names_, layer, module);
  }

  int64_t layer = 0;
  int64_t width = 0;

 private:
  const TensorNames& names_;
  TensorTable& table_;
};

}  // namespace

std::string layer_path(
    const TensorNames& names, int64_t index, const std::string& module
) {
  return fmt::format(fmt::runtime(names.layer), index) + "." + module;
}

TensorTable decoder_tensors(const DecoderSpec& spec, const TensorNames& names) {
  TensorTable table;
  TableBuilder build(names, table);
  build.width = spec.embedding.width;
  build.matrix(
      names.embedding,
      spec.embedding.vocabulary,
      spec.embedding.width,
      Split::replicated
  );
  for (const LayerSpec& layer : spec.layers) {
    build.norm(build.at(names.mixer_norm), layer.norm, build.width);
    std::visit(build, layer.mixer);
    build.norm(build.at(names.ffn_norm), layer.norm, build.width);
    std::visit(build, layer.ffn);
    ++build.layer;
  }
  build.norm(names.final_norm, spec.final_norm, build.width);
  if (spec.head.tied) {
    table.push_back({names.head + ".weight", {}, TensorRole::unused, false, {}}
    );
  } else {
    build.matrix(
        names.head, spec.embedding.vocabulary, spec.embedding.width, Split::rows
    );
  }
  return table;
}

}  // namespace mlxcel::nn
