#include "mlxcel/weights/transform/expert_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "mlxcel/core/error.h"
#include "mlxcel/core/json.h"
#include "mlxcel/weights/transform/planes_beside.h"
#include "mlxcel/weights/weight_slice.h"

namespace mlxcel {

namespace {

constexpr std::string_view kExperts = ".experts.";
constexpr std::string_view kStack = ".switch_mlp.";

struct ExpertName {
  std::string_view root;  // "model.layers.0.mlp"
  int64_t expert = 0;
  std::string_view plane;  // "gate_proj.weight"
};

// Empty if the tensor is not that of one expert.
std::optional<ExpertName> parse(std::string_view name) {
  size_t at = name.find(kExperts);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view rest = name.substr(at + kExperts.size());
  ExpertName found{name.substr(0, at), 0, {}};
  auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), found.expert);
  auto digits = static_cast<size_t>(end - rest.data());
  if (error != std::errc() || digits >= rest.size() || rest[digits] != '.' ||
      found.expert < 0 || (digits > 1 && rest[0] == '0')) {
    return std::nullopt;
  }
  found.plane = rest.substr(digits + 1);
  return found;
}

struct Plane {
  int64_t expert;
  Weight weight;
};

// The planes of one matrix, sorted by expert.
struct Stack {
  std::string root;
  std::string name;  // of the stack
  std::vector<Plane> experts;

  std::string plane() const {
    return name.substr(root.size() + kStack.size());
  }
};

[[noreturn]] void reject(
    const WeightMap& weights, const std::string& root, const std::string& why
) {
  fail(
      ErrorCode::invalid_input,
      fmt::format("[experts] {}: {} (in {})", root, why, weights.origin)
  );
}

void check(
    const WeightMap& weights, const Stack& stack, std::optional<int64_t> wanted
) {
  std::string path = stack.root + ".experts";
  int64_t next = 0;
  for (const Plane& plane : stack.experts) {
    if (plane.expert != next) {
      break;
    }
    ++next;
  }
  int64_t most = std::max(wanted.value_or(0), stack.experts.back().expert + 1);
  if (next < most) {
    reject(
        weights,
        path,
        fmt::format(
            "{} is there for {} of {} experts, the first without it is {}",
            stack.plane(),
            stack.experts.size(),
            most,
            next
        )
    );
  }
  const Weight& first = stack.experts.front().weight;
  for (const auto& [expert, weight] : stack.experts) {
    if (weight.shape != first.shape || weight.dtype != first.dtype) {
      reject(
          weights,
          path,
          fmt::format(
              "{} is {} of expert 0 and {} of expert {}",
              stack.plane(),
              first.describe(),
              weight.describe(),
              expert
          )
      );
    }
  }
}

// Half `half` of the second axis of a [E, 2 I, ...] stack.
Weight half_of(const Weight& stack, int64_t half) {
  std::vector<Weight> parts;
  int64_t rows = stack.shape[1] / 2;
  for (int64_t e = 0; e < stack.shape[0]; ++e) {
    parts.push_back(slice_rows(element_of(stack, e), half * rows, rows));
  }
  return stack_weights(std::move(parts));
}

// "<root>.experts.gate_up_proj" and its planes.
std::optional<std::string> fused_plane(
    std::string_view name, std::string_view projection, std::string& root
) {
  std::string middle = fmt::format("{}{}", kExperts, projection);
  size_t at = name.find(middle);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view rest = name.substr(at + middle.size());
  root = std::string(name.substr(0, at));
  if (rest.empty()) {
    return ".weight";
  }
  return rest[0] == '.' ? std::optional(std::string(rest)) : std::nullopt;
}

int64_t split_fused_experts(WeightMap& weights) {
  std::vector<std::string> names;
  for (const auto& [name, weight] : weights) {
    if (name.find(kExperts) != std::string::npos) {
      names.push_back(name);
    }
  }
  int64_t made = 0;
  for (const std::string& name : names) {
    std::string root;
    if (auto plane = fused_plane(name, "down_proj", root)) {
      weights.rename(
          name, fmt::format("{}{}down_proj{}", root, kStack, *plane)
      );
      ++made;
      continue;
    }
    auto plane = fused_plane(name, "gate_up_proj", root);
    if (!plane) {
      continue;
    }
    Weight fused = weights.at(name);
    if (fused.shape.size() < 2 || fused.shape[0] == 0 ||
        fused.shape[1] % 2 != 0) {
      reject(
          weights,
          name,
          fmt::format("{} can't be split in halves", fused.describe())
      );
    }
    weights.erase(name);
    weights.insert(
        fmt::format("{}{}gate_proj{}", root, kStack, *plane), half_of(fused, 0)
    );
    weights.insert(
        fmt::format("{}{}up_proj{}", root, kStack, *plane), half_of(fused, 1)
    );
    made += 2;
  }
  return made;
}

}  // namespace

struct ExpertCollector::State {
  std::vector<Stack> stacks;
  std::unordered_map<std::string, size_t> places;
  std::string target;  // kept for its memory
};

ExpertCollector::ExpertCollector() : state_(std::make_unique<State>()) {}
ExpertCollector::~ExpertCollector() = default;

bool ExpertCollector::is_expert(std::string_view name) {
  return parse(name).has_value();
}

bool ExpertCollector::take(std::string_view name, Weight& weight) {
  auto found = parse(name);
  if (!found) {
    return false;
  }
  std::string& target = state_->target;
  target.assign(found->root).append(kStack).append(found->plane);
  auto [place, fresh] =
      state_->places.try_emplace(target, state_->stacks.size());
  if (fresh) {
    state_->stacks.push_back({std::string(found->root), target, {}});
  }
  state_->stacks[place->second].experts.push_back(
      {found->expert, std::move(weight)}
  );
  return true;
}

int64_t ExpertCollector::finish(
    WeightMap& weights, std::optional<int64_t> declared
) {
  for (Stack& stack : state_->stacks) {
    std::sort(
        stack.experts.begin(),
        stack.experts.end(),
        [](const Plane& a, const Plane& b) { return a.expert < b.expert; }
    );
    check(weights, stack, declared);
    std::vector<Weight> parts;
    parts.reserve(stack.experts.size());
    for (Plane& plane : stack.experts) {
      parts.push_back(std::move(plane.weight));
    }
    weights.insert(stack.name, stack_weights(std::move(parts)));
  }
  return std::ssize(state_->stacks);
}

std::optional<int64_t> declared_experts(const Json& config) {
  for (const char* key :
       {"num_experts", "num_local_experts", "n_routed_experts"}) {
    auto field = config.find(key);
    if (field && field->is_integer()) {
      return field->as_int();
    }
  }
  auto text = config.find("text_config");
  return text && text->is_object() ? declared_experts(*text) : std::nullopt;
}

int64_t stack_experts(WeightMap& weights, std::optional<int64_t> declared) {
  ExpertCollector collector;
  for (auto& [name, weight] : weights.take_if(&ExpertCollector::is_expert)) {
    collector.take(name, weight);
  }
  return collector.finish(weights, declared) + split_fused_experts(weights);
}

}  // namespace mlxcel
