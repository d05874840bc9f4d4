#include "mlxcel/weights/convert/checkpoint/source_matrix.h"

#include <fmt/format.h>

#include <map>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"

namespace mlxcel::convert {

namespace {

constexpr std::string_view kWeight = ".weight";

// [E, rows, x] as [E * rows, x]; a vector is one row.
Weight flat(const Weight& weight) {
  Weight two = weight;
  int64_t cols = weight.shape.empty() ? 1 : weight.shape.back();
  int64_t elements = weight.elements();
  two.shape = {cols == 0 ? 0 : elements / cols, cols};
  return two;
}

// weights-and-quantization.md 12.3, where the width isn't known: affine planes
// by the declared group, byte scales by the bits that a group has.
int64_t columns_of(
    const Weight& codes,
    const Weight& scales,
    bool affine,
    const QuantConfig::Override& declared
) {
  int64_t words = codes.shape.empty() ? 0 : codes.shape.back();
  int64_t groups = scales.shape.empty() ? 0 : scales.shape.back();
  if (groups <= 0) {
    return words;
  }
  if (affine) {
    return groups * declared.group;
  }
  switch (words * 32 / groups) {
    case 64:
      return groups * 16;
    default:
      return groups * 32;
  }
}

class Collector {
 public:
  Collector(
      WeightMap& weights,
      const QuantConfig& quantization,
      const Quantizable& quantizable
  )
      : weights_(weights),
        quantization_(quantization),
        quantizable_(quantizable) {}

  std::vector<SourceMatrix> run() {
    std::vector<std::string> names;
    for (const auto& [name, weight] : weights_) {
      names.push_back(name);
    }
    for (const std::string& name : names) {
      if (name.ends_with(kWeight)) {
        take_planes(name);
      }
    }
    for (const std::string& name : names) {
      const Weight* weight = weights_.find(name);
      if (weight != nullptr && is_weight_float(weight->dtype) &&
          weight->elements() > 0) {
        take_dense(name, *weight);
      }
    }
    stack_experts();
    return std::move(found_);
  }

 private:
  void take_planes(const std::string& name) {
    std::string path = name.substr(0, name.size() - kWeight.size());
    const Weight* scales = weights_.find(path + ".scales");
    if (scales == nullptr) {
      return;
    }
    Weight codes = weights_.at(name);
    const Weight* biases = weights_.find(path + ".biases");
    int64_t cols = quantizable_.columns(name);
    if (cols == 0) {
      cols = columns_of(
          codes, *scales, biases != nullptr, quantization_.for_module(path)
      );
    }
    WeightMap one;
    one.origin = weights_.origin;
    std::vector<int64_t> shape = codes.shape;
    for (const char* plane : {".weight", ".scales", ".biases"}) {
      if (const Weight* weight = weights_.find(path + plane)) {
        one.insert(path + plane, flat(*weight));
        weights_.erase(path + plane);
      }
    }
    if (const Weight* global = weights_.find(path + ".global_scale")) {
      one.insert(path + ".global_scale", *global);
      weights_.erase(path + ".global_scale");
    }
    int64_t rows = one.at(name).shape[0];
    SourceMatrix matrix{name, std::move(shape), {}};
    matrix.parts.push_back(bind_linear(one, path, rows, cols, quantization_));
    matrix.shape.back() = cols;
    found_.push_back(std::move(matrix));
  }

  void take_dense(const std::string& name, const Weight& weight) {
    LinearWeight dense;
    dense.path = name.ends_with(kWeight)
                     ? name.substr(0, name.size() - kWeight.size())
                     : name;
    dense.codes = flat(weight);
    dense.rows = dense.codes.shape[0];
    dense.cols = dense.codes.shape[1];
    dense.format.dtype = weight.dtype;
    SourceMatrix matrix{name, weight.shape, {}};
    matrix.parts.push_back(std::move(dense));
    weights_.erase(name);
    found_.push_back(std::move(matrix));
  }

  struct Stack {
    std::map<int64_t, size_t> experts;  // number -> place in found_
  };

  // "R.experts.7.up_proj.weight" -> "R.switch_mlp.up_proj.weight" and 7.
  static std::string stack_name(const std::string& name, int64_t& expert) {
    constexpr std::string_view kExperts = ".experts.";
    size_t at = name.find(kExperts);
    if (at == std::string::npos) {
      return "";
    }
    size_t begin = at + kExperts.size();
    size_t end = name.find('.', begin);
    if (end == std::string::npos) {
      return "";
    }
    auto number = parse_int(name.substr(begin, end - begin));
    std::string rest = name.substr(end + 1);
    bool known = rest == "gate_proj.weight" || rest == "up_proj.weight" ||
                 rest == "down_proj.weight";
    if (!number || *number < 0 || !known) {
      return "";
    }
    expert = *number;
    return name.substr(0, at) + ".switch_mlp." + rest;
  }

  void stack_experts() {
    std::map<std::string, Stack> stacks;
    for (size_t i = 0; i < found_.size(); ++i) {
      int64_t expert = 0;
      std::string name = stack_name(found_[i].name, expert);
      if (!name.empty()) {
        stacks[name].experts[expert] = i;
      }
    }
    std::vector<SourceMatrix> all;
    std::vector<bool> taken(found_.size());
    for (auto& [name, stack] : stacks) {
      SourceMatrix matrix;
      matrix.name = name;
      int64_t expected = 0;
      for (auto [expert, place] : stack.experts) {
        SourceMatrix& one = found_[place];
        if (expert != expected++) {
          reject(name, fmt::format("expert {} is missing", expected - 1));
        }
        if (matrix.shape.empty()) {
          matrix.shape = one.shape;
        }
        if (one.shape != matrix.shape ||
            (!matrix.parts.empty() &&
             one.parts[0].format != matrix.parts[0].format)) {
          reject(name, fmt::format("expert {} differs from the first", expert));
        }
        matrix.parts.push_back(std::move(one.parts[0]));
        taken[place] = true;
      }
      matrix.shape.insert(matrix.shape.begin(), expected);
      all.push_back(std::move(matrix));
    }
    for (size_t i = 0; i < found_.size(); ++i) {
      if (!taken[i]) {
        all.push_back(std::move(found_[i]));
      }
    }
    found_ = std::move(all);
  }

  [[noreturn]] void reject(const std::string& name, const std::string& why)
      const {
    fail(
        ErrorCode::invalid_input,
        fmt::format("[convert] {}: {} (in {})", name, why, weights_.origin)
    );
  }

  WeightMap& weights_;
  const QuantConfig& quantization_;
  const Quantizable& quantizable_;
  std::vector<SourceMatrix> found_;
};

}  // namespace

std::vector<SourceMatrix> collect_matrices(
    WeightMap& weights,
    const QuantConfig& quantization,
    const Quantizable& quantizable
) {
  return Collector(weights, quantization, quantizable).run();
}

}  // namespace mlxcel::convert
