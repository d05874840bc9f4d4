#pragma once

#include <span>
#include <string>
#include <string_view>

#include "mlxcel/loading/model_type.h"
#include "mlxcel/models/language_model.h"

namespace mlxcel {

/// Which loader builds the model from a directory.
enum class DirectoryRoute {
  config_backed,
  nonstandard,
  vlm,
  mistral3_dynamic,
  detector,
};
/// Which loader builds it from weights in memory (fused adapters).
enum class WeightRoute { config_backed, llama_family, special, none };

enum class Category {
  dense,
  moe,
  hybrid_ssm,
  linear_attention,
  diffusion,
  vlm,
  embedding,
  reranker,
  asr,
  tts,
  speech_to_speech,
  detection,
};

/// Whether adapters can be fused, and if not, why.
enum class Adapters { accepted, not_yet, unsupported, other_task };

/// How it is decided whether a checkpoint has its vision tower
/// (loading/towers.h).
enum class Tower {
  none,        // the architecture takes no images
  separate,    // declared by vision_config; the weights may say otherwise
  proven,      // the same, but only weights that were seen prove it
  undeclared,  // the config says nothing: the weights decide
  fixed,       // part of the decoder: the model can't go without
};

/// Whether the family can be loaded or is only known by name.
enum class Status { built, recognised };

/// Prefixes of tower tensors that most vision families use.
inline constexpr std::string_view kCommonTowers =
    "vision_tower. model.vision_tower. visual. model.visual. vision_model. "
    "model.vision_model.";

/// All that detection, policy, `arch` and the documentation know of one
/// architecture. Lists are separated by spaces. In the order in which a row is
/// read, not the most compact one: there are some two hundred.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
struct Descriptor {
  ModelType type = ModelType::count;
  std::string_view id;            // "qwen3", stable
  std::string_view display_name;  // "Qwen 3"
  std::string_view group;         // "Qwen"
  Category category = Category::dense;
  /// Keys of config.json that lead here by themselves, lower case.
  std::string_view model_types;
  /// Keys of other rows that lead here under a condition (loading/detect.h).
  std::string_view shared_types;
  std::string_view classes;  // as published configs name them
  std::string_view aliases;  // marketing names, separated by commas
  DirectoryRoute directory_route = DirectoryRoute::config_backed;
  WeightRoute weight_route = WeightRoute::config_backed;
  Adapters adapters = Adapters::accepted;
  std::string_view runtimes = "generate serve";
  std::string_view modalities_in = "text";
  Tower tower = Tower::none;
  std::string_view towers = kCommonTowers;  // tensor name prefixes
  /// What the checkpoint is without its tower; `count`: this row still.
  ModelType text_variant = ModelType::count;
  std::string_view needs;  // sub-configs without which nothing can be built
  /// Float16 has too little range for it (weights/transform/half_policy.h).
  bool keeps_bf16 = false;
  Status status = Status::recognised;
  const Family* family = nullptr;  // null unless built
};

/// What a family can do at run time; a claim of the family, not a promise for
/// each checkpoint. detection-and-routing.md 1.6.
struct Capabilities {
  bool native_video = false;
  bool tensor_parallel = false;
  bool pipeline_parallel = false;
  bool mtp = false;  // drafter kinds
  bool dflash = false;
  bool quantized_kv = false;  // int8 and turbo4 beside fp16
  bool paged_by_default = false;
};

/// In the order of declaration.
std::span<const Descriptor> registry();
const Descriptor& descriptor(ModelType type);
/// The row that a `model_type` of config.json leads to by itself. ASCII case
/// does not matter; - and _ do only where both spellings are keys.
const Descriptor* find_model_type(std::string_view model_type);
Capabilities capabilities(ModelType type);

/// True if `word` is one of the words of `list`.
constexpr bool contains_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    size_t end = list.find(' ');
    if (list.substr(0, end) == word) {
      return true;
    }
    if (end == std::string_view::npos) {
      return false;
    }
    list.remove_prefix(end + 1);
  }
  return false;
}

std::string_view category_name(Category category);
std::string_view directory_route_name(DirectoryRoute route);
std::string_view weight_route_name(WeightRoute route);

}  // namespace mlxcel
