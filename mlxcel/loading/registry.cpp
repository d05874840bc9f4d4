#include "mlxcel/loading/registry.h"

#include <array>

#include "mlxcel/models/text/decoder_family.h"
#include "mlxcel/models/text/gemma.h"
#include "mlxcel/models/text/llama.h"
#include "mlxcel/models/text/qwen2.h"
#include "mlxcel/models/text/qwen3.h"

namespace mlxcel {

namespace {

constexpr Family kLlama = models::decoder_family<models::llama>();
constexpr Family kQwen2 = models::decoder_family<models::qwen2>();
constexpr Family kQwen3 = models::decoder_family<models::qwen3>();
constexpr Family kGemma = models::decoder_family<models::gemma>();

// A dense text decoder by the common routes.
constexpr Descriptor dense_text(
    ModelType type,
    std::string_view id,
    std::string_view display_name,
    std::string_view group,
    std::string_view model_types,
    const Family* family
) {
  return {
      type,
      id,
      display_name,
      group,
      Category::dense,
      model_types,
      "",
      DirectoryRoute::config_backed,
      WeightRoute::config_backed,
      "",
      "generate serve",
      "text",
      Status::built,
      family,
  };
}

constexpr auto kRegistry = std::to_array<Descriptor>({
    dense_text(
        ModelType::llama,
        "llama",
        "Llama 1-3, Mistral 1-2",
        "Llama",
        "llama mistral",
        &kLlama
    ),
    dense_text(
        ModelType::qwen2, "qwen2", "Qwen 2, 2.5", "Qwen", "qwen2", &kQwen2
    ),
    dense_text(ModelType::qwen3, "qwen3", "Qwen 3", "Qwen", "qwen3", &kQwen3),
    dense_text(ModelType::gemma, "gemma", "Gemma", "Gemma", "gemma", &kGemma),
});

// True if `word` is one of the words of `list`.
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

constexpr bool share_a_word(std::string_view a, std::string_view b) {
  while (!a.empty()) {
    size_t end = a.find(' ');
    if (contains_word(b, a.substr(0, end))) {
      return true;
    }
    if (end == std::string_view::npos) {
      return false;
    }
    a.remove_prefix(end + 1);
  }
  return false;
}

constexpr bool each_type_once() {
  constexpr size_t count = static_cast<size_t>(ModelType::count);
  std::array<int, count> seen{};
  for (const Descriptor& entry : kRegistry) {
    ++seen[static_cast<size_t>(entry.type)];
  }
  for (int times : seen) {
    if (times != 1) {
      return false;
    }
  }
  return kRegistry.size() == count;
}

constexpr bool no_shared_keys() {
  for (size_t i = 0; i < kRegistry.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (kRegistry[i].id == kRegistry[j].id ||
          share_a_word(kRegistry[i].model_types, kRegistry[j].model_types)) {
        return false;
      }
    }
  }
  return true;
}

constexpr bool routes_agree() {
  for (const Descriptor& entry : kRegistry) {
    bool no_weights = entry.weight_route == WeightRoute::none;
    if (no_weights == entry.adapter_refusal.empty()) {
      return false;
    }
    if (entry.directory_route == DirectoryRoute::vlm && !no_weights) {
      return false;
    }
  }
  return true;
}

// The family has the function that each of its routes calls.
constexpr bool routes_have_code() {
  for (const Descriptor& entry : kRegistry) {
    if (entry.family == nullptr) {
      continue;
    }
    const Family& family = *entry.family;
    bool own_loader = entry.directory_route == DirectoryRoute::nonstandard ||
                      entry.directory_route == DirectoryRoute::vlm;
    bool own_weights = entry.weight_route == WeightRoute::special;
    bool builds = entry.directory_route == DirectoryRoute::config_backed ||
                  entry.weight_route == WeightRoute::config_backed ||
                  entry.weight_route == WeightRoute::llama_family;
    if (family.tensors == nullptr || (builds && family.build == nullptr) ||
        (own_loader && family.load_directory == nullptr) ||
        (own_weights && family.load_weights == nullptr)) {
      return false;
    }
  }
  return true;
}

constexpr bool built_has_family() {
  for (const Descriptor& entry : kRegistry) {
    if ((entry.status == Status::built) != (entry.family != nullptr) ||
        entry.model_types.empty() || entry.display_name.empty() ||
        entry.group.empty()) {
      return false;
    }
  }
  return true;
}

static_assert(each_type_once(), "every ModelType has exactly one descriptor");
static_assert(no_shared_keys(), "an id or a model_type key is used twice");
static_assert(
    routes_agree(),
    "weight route none and a refusal go together, and vlm needs both"
);
static_assert(routes_have_code(), "a route without the function it calls");
static_assert(built_has_family(), "a family exactly where the status is built");

}  // namespace

std::span<const Descriptor> registry() {
  return kRegistry;
}

const Descriptor& descriptor(ModelType type) {
  for (const Descriptor& entry : kRegistry) {
    if (entry.type == type) {
      return entry;
    }
  }
  __builtin_unreachable();
}

const Descriptor* find_model_type(std::string_view model_type) {
  std::string key(model_type);
  for (char& c : key) {
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    }
    if (c == '-') {
      c = '_';
    }
  }
  for (const Descriptor& entry : kRegistry) {
    if (contains_word(entry.model_types, key)) {
      return &entry;
    }
  }
  return nullptr;
}

std::string_view category_name(Category category) {
  switch (category) {
    case Category::dense:
      return "dense";
    case Category::moe:
      return "moe";
    case Category::hybrid_ssm:
      return "hybrid_ssm";
    case Category::linear_attention:
      return "linear_attention";
    case Category::diffusion:
      return "diffusion";
    case Category::vlm:
      return "vlm";
    case Category::embedding:
      return "embedding";
    case Category::reranker:
      return "reranker";
    case Category::asr:
      return "asr";
    case Category::tts:
      return "tts";
    case Category::speech_to_speech:
      return "speech_to_speech";
    case Category::detection:
      return "detection";
  }
  __builtin_unreachable();
}

std::string_view directory_route_name(DirectoryRoute route) {
  switch (route) {
    case DirectoryRoute::config_backed:
      return "config_backed";
    case DirectoryRoute::nonstandard:
      return "nonstandard";
    case DirectoryRoute::vlm:
      return "vlm";
    case DirectoryRoute::mistral3_dynamic:
      return "mistral3_dynamic";
  }
  __builtin_unreachable();
}

std::string_view weight_route_name(WeightRoute route) {
  switch (route) {
    case WeightRoute::config_backed:
      return "config_backed";
    case WeightRoute::llama_family:
      return "llama_family";
    case WeightRoute::special:
      return "special";
    case WeightRoute::none:
      return "none";
  }
  __builtin_unreachable();
}

}  // namespace mlxcel
