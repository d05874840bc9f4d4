#include "mlxcel/weights/convert/checkpoint/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "mlxcel/core/error.h"
#include "mlxcel/core/json.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/text.h"
#include "mlxcel/weights/convert/checkpoint/quantizable.h"
#include "mlxcel/weights/convert/checkpoint/source_matrix.h"

namespace mlxcel::convert {

namespace {

constexpr std::string_view kWeight = ".weight";
constexpr size_t kShownNames = 5;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// What mlx-lm's families keep in their own type (cast_predicate).
bool keeps_type(const std::string& name) {
  constexpr std::array<std::string_view, 5> kKept = {
      "e_score_correction_bias",
      "expert_bias",
      "router_bias",
      "A_log",
      "dt_bias"};
  return std::any_of(kKept.begin(), kKept.end(), [&](std::string_view part) {
    return contains(name, part);
  });
}

std::optional<DType> spelled_type(const std::optional<Json>& field) {
  if (!field || !field->is_string()) {
    return std::nullopt;
  }
  const std::string& name = field->as_string();
  if (name == "float32") {
    return DType::f32;
  }
  if (name == "float16") {
    return DType::f16;
  }
  return name == "bfloat16" ? std::optional(DType::bf16) : std::nullopt;
}

// As mlx_lm.convert finds it.
std::optional<DType> config_type(const Json& config) {
  if (auto field = config.find("torch_dtype")) {
    return spelled_type(field);
  }
  auto text = config.find("text_config");
  return text && text->is_object() ? spelled_type(text->find("dtype"))
                                   : std::nullopt;
}

// "a.9" before "a.10".
bool natural_less(const std::string& a, const std::string& b) {
  size_t i = 0;
  size_t j = 0;
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      size_t i_end = std::min(a.find_first_not_of("0123456789", i), a.size());
      size_t j_end = std::min(b.find_first_not_of("0123456789", j), b.size());
      size_t length = i_end - i;
      if (length != j_end - j) {
        return length < j_end - j;
      }
      int order = a.compare(i, length, b, j, length);
      if (order != 0) {
        return order < 0;
      }
      i = i_end;
      j = j_end;
    } else if (a[i] != b[j]) {
      return a[i] < b[j];
    } else {
      ++i;
      ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

class Planner {
 public:
  explicit Planner(const PlanRequest& request)
      : request_(request),
        quantizable_(request.table),
        wanted_type_(
            request.dtype ? request.dtype : config_type(request.config)
        ) {}

  Plan run(WeightMap weights) {
    drop_unused(weights);
    for (SourceMatrix& matrix : collect_matrices(
             weights, QuantConfig::from_config(request_.config), quantizable_
         )) {
      add_matrix(std::move(matrix));
    }
    for (const auto& [name, weight] : weights) {
      add_plain(name, weight);
    }
    sort();
    if (request_.action == Action::quantize) {
      choose_formats();
    }
    declare();
    tell();
    return std::move(plan_);
  }

 private:
  // What mlx-lm's sanitising takes away from every family that has it.
  void drop_unused(WeightMap& weights) {
    std::vector<std::string> names;
    for (const auto& [name, weight] : weights) {
      bool tied_head = quantizable_.has_table() &&
                       name.starts_with("lm_head.") &&
                       !quantizable_.knows("lm_head.weight");
      if (tied_head || contains(name, "rotary_emb.inv_freq")) {
        names.push_back(name);
      }
    }
    for (const std::string& name : names) {
      weights.erase(name);
    }
    if (!names.empty()) {
      plan_.notes.push_back(
          "left out, computed or tied: " + list_names(names, kShownNames)
      );
    }
  }

  DType value_type(const std::string& name, const WeightFormat& source) const {
    bool floats =
        source.mode == QuantMode::dense || source.mode == QuantMode::affine;
    DType own = floats ? source.dtype : DType::bf16;
    return wanted_type_ && !keeps_type(name) ? *wanted_type_ : own;
  }

  void add_matrix(SourceMatrix matrix) {
    PlannedTensor tensor;
    tensor.name = std::move(matrix.name);
    tensor.shape = std::move(matrix.shape);
    tensor.parts = std::move(matrix.parts);
    WeightFormat source = tensor.source_format();
    tensor.value_type = value_type(tensor.name, source);
    tensor.target = source;
    bool scaled = tensor.parts[0].global_scale != 1.0F;
    if (source.mode == QuantMode::dense ||
        request_.action == Action::dequantize) {
      tensor.target = WeightFormat{};
      tensor.target.dtype = tensor.value_type;
    } else if (source.mode == QuantMode::affine) {
      tensor.target.dtype = tensor.value_type;
    } else if (scaled) {
      keep_global_scale(tensor);
    }
    plan_.tensors.push_back(std::move(tensor));
  }

  // Beside planes that stay as they are. Quantising folds it into the values.
  void keep_global_scale(const PlannedTensor& tensor) {
    if (request_.action == Action::quantize &&
        quantizable_(tensor.name, tensor.shape)) {
      return;
    }
    PlannedTensor scale;
    scale.name = tensor.path() + ".global_scale";
    scale.shape = {1};
    const auto* bytes =
        reinterpret_cast<const std::byte*>(&tensor.parts[0].global_scale);
    scale.raw = {
        DType::f32,
        {1},
        Component::core,
        buffer_source({bytes, bytes + sizeof(float)}, scale.name)};
    plan_.tensors.push_back(std::move(scale));
    ++global_scales_;
  }

  void add_plain(const std::string& name, const Weight& weight) {
    PlannedTensor tensor;
    tensor.name = name;
    tensor.shape = weight.shape;
    tensor.raw = weight;
    if (!quantizable_.knows(name)) {
      unknown_.push_back(name);
    }
    plan_.tensors.push_back(std::move(tensor));
  }

  void sort() {
    std::stable_sort(
        plan_.tensors.begin(),
        plan_.tensors.end(),
        [&](const PlannedTensor& a, const PlannedTensor& b) {
          size_t x = quantizable_.order(a.name);
          size_t y = quantizable_.order(b.name);
          return x != y ? x < y : natural_less(a.name, b.name);
        }
    );
  }

  std::vector<PlannedTensor*> candidates() {
    std::vector<PlannedTensor*> found;
    for (PlannedTensor& tensor : plan_.tensors) {
      if (!tensor.parts.empty() && quantizable_(tensor.name, tensor.shape)) {
        found.push_back(&tensor);
      }
    }
    return found;
  }

  // Where mlx-lm finds the number of a layer, and how many layers there are.
  void find_layers(const std::vector<PlannedTensor*>& tensors) {
    bool found = false;
    std::set<std::string> layers;
    for (const PlannedTensor* tensor : tensors) {
      std::string path = tensor->path();
      size_t at = path.find("layers.");
      if (at != std::string::npos) {
        std::string rest = path.substr(at + 7);
        layers.insert(rest.substr(0, rest.find('.')));
      }
      if (!found && contains(path, "down_proj")) {
        found = true;
        size_t part = 0;
        size_t begin = 0;
        while (begin < path.size()) {
          size_t end = std::min(path.find('.', begin), path.size());
          if (parse_int(path.substr(begin, end - begin))) {
            break;
          }
          ++part;
          begin = end + 1;
        }
        layer_at_ = part;
      }
    }
    if (!found) {
      fail(
          ErrorCode::usage,
          "[convert] --quant-predicate: the model has no down_proj, by which "
          "the mixed presets go"
      );
    }
    layers_ = static_cast<int64_t>(layers.size());
  }

  LayerFormat format_of(const std::string& path) {
    const QuantRecipe& recipe = request_.recipe;
    std::optional<LayerFormat> chosen;
    for (size_t i = 0; i < recipe.rules.size(); ++i) {
      if (matches(recipe.rules[i].pattern, path)) {
        used_.insert(i);
        chosen = chosen ? chosen : std::optional(recipe.rules[i].format);
      }
    }
    if (chosen) {
      return *chosen;
    }
    if (recipe.preset) {
      return preset_format(
          *recipe.preset, recipe.base.group, path, layer_at_, layers_
      );
    }
    for (const LayerRule& rule : recipe.family_rules) {
      if (matches(rule.pattern, path)) {
        return rule.format;
      }
    }
    return recipe.base;
  }

  void choose_formats() {
    std::vector<PlannedTensor*> tensors = candidates();
    if (request_.recipe.preset) {
      find_layers(tensors);
    }
    bool any = false;
    for (PlannedTensor* tensor : tensors) {
      LayerFormat format = format_of(tensor->path());
      int64_t cols = tensor->cols();
      tensor->target = WeightFormat{};
      tensor->target.dtype = tensor->value_type;
      if (format.mode == QuantMode::dense) {
        tensor->left_dense = "a rule says so";
        continue;
      }
      int group = cols % request_.recipe.base.group != 0
                      ? request_.recipe.base.group
                      : format.group;
      if (cols % group != 0) {
        tensor->left_dense =
            fmt::format("{} columns are no multiple of {}", cols, group);
        continue;
      }
      any = true;
      tensor->folds_scale = tensor->parts[0].global_scale != 1.0F;
      bool affine = format.mode == QuantMode::affine;
      tensor->target = {
          format.mode,
          affine ? tensor->value_type : DType::u8,
          format.bits,
          format.group};
    }
    check_rules();
    if (!any) {
      fail(ErrorCode::usage, "[convert] no tensor could be quantised so");
    }
  }

  void check_rules() const {
    std::vector<std::string> unused;
    for (size_t i = 0; i < request_.recipe.rules.size(); ++i) {
      if (!used_.contains(i)) {
        unused.push_back(quote(request_.recipe.rules[i].pattern));
      }
    }
    if (!unused.empty()) {
      fail(
          ErrorCode::usage,
          fmt::format(
              "[convert] {}: matches no module that can be quantised (a path "
              "is like model.layers.0.mlp.up_proj)",
              list_names(unused, kShownNames)
          )
      );
    }
  }

  // The format of most modules, or what was asked for.
  void declare() {
    std::map<std::array<int, 3>, int> counts;
    for (const PlannedTensor& tensor : plan_.tensors) {
      const WeightFormat& f = tensor.target;
      if (!tensor.parts.empty() && f.mode != QuantMode::dense) {
        ++counts[{static_cast<int>(f.mode), f.bits, f.group}];
      }
    }
    if (counts.empty()) {
      return;
    }
    auto most = std::max_element(
        counts.begin(),
        counts.end(),
        [](const auto& a, const auto& b) { return a.second < b.second; }
    );
    plan_.declared = {
        static_cast<QuantMode>(most->first[0]), most->first[1], most->first[2]};
    if (request_.action == Action::quantize && !request_.recipe.preset) {
      plan_.declared = request_.recipe.base;
    }
  }

  void tell() {
    if (!unknown_.empty()) {
      plan_.notes.push_back(
          "kept, but not of this family: " + list_names(unknown_, kShownNames)
      );
    }
    if (global_scales_ > 0) {
      plan_.notes.push_back(fmt::format(
          "{} matrices keep a global_scale, which mlx-lm can't read; -q folds "
          "it in",
          global_scales_
      ));
    }
  }

  const PlanRequest& request_;
  Quantizable quantizable_;
  std::optional<DType> wanted_type_;
  Plan plan_;
  std::vector<std::string> unknown_;
  std::set<size_t> used_;
  size_t layer_at_ = 0;
  int64_t layers_ = 0;
  int64_t global_scales_ = 0;
};

}  // namespace

std::string PlannedTensor::path() const {
  return name.ends_with(kWeight) ? name.substr(0, name.size() - kWeight.size())
                                 : name;
}

WeightFormat PlannedTensor::source_format() const {
  if (!parts.empty()) {
    return parts[0].format;
  }
  WeightFormat format;
  format.dtype = raw.dtype;
  return format;
}

int64_t PlannedTensor::rows() const {
  int64_t rows = 0;
  for (const LinearWeight& part : parts) {
    rows += part.rows;
  }
  return rows;
}

int64_t PlannedTensor::cols() const {
  return parts.empty() ? 0 : parts[0].cols;
}

Plan make_plan(WeightMap weights, const PlanRequest& request) {
  return Planner(request).run(std::move(weights));
}

}  // namespace mlxcel::convert
