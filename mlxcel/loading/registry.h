#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "mlxcel/loading/model_type.h"
#include "mlxcel/models/language_model.h"

namespace mlxcel {

/// Which loader builds the model from a directory.
enum class DirectoryRoute { config_backed, nonstandard, vlm, mistral3_dynamic };
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

/// Whether the family can be loaded or is only known by name.
enum class Status { built, recognised };

/// All that detection, policy, `arch` and the documentation know of one
/// architecture. Lists are separated by spaces.
struct Descriptor {
  ModelType type;
  std::string_view id;            // "qwen3", stable
  std::string_view display_name;  // "Qwen 3"
  std::string_view group;         // "Qwen"
  Category category;
  std::string_view model_types;  // keys of config.json, lower case
  std::string_view aliases;      // marketing names, separated by commas
  DirectoryRoute directory_route;
  WeightRoute weight_route;
  /// Why adapters are refused; empty if they are not.
  std::string_view adapter_refusal;
  std::string_view runtimes;       // "generate serve"
  std::string_view modalities_in;  // "text"
  Status status;
  const Family* family;  // null unless built
};

std::span<const Descriptor> registry();
const Descriptor& descriptor(ModelType type);
/// By a `model_type` of config.json; ASCII case and - / _ don't matter.
const Descriptor* find_model_type(std::string_view model_type);

std::string_view category_name(Category category);
std::string_view directory_route_name(DirectoryRoute route);
std::string_view weight_route_name(WeightRoute route);

}  // namespace mlxcel
