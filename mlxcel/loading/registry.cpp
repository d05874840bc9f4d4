#include "mlxcel/loading/registry.h"

#include <algorithm>
#include <array>

#include "mlxcel/core/text.h"
#include "mlxcel/loading/registry/asia.h"
#include "mlxcel/loading/registry/deepseek.h"
#include "mlxcel/loading/registry/facts.h"
#include "mlxcel/loading/registry/gemma.h"
#include "mlxcel/loading/registry/llama.h"
#include "mlxcel/loading/registry/mistral.h"
#include "mlxcel/loading/registry/other.h"
#include "mlxcel/loading/registry/qwen.h"
#include "mlxcel/loading/registry/recurrent.h"
#include "mlxcel/loading/registry/text.h"
#include "mlxcel/loading/registry/vision.h"
#include "mlxcel/models/text/decoder_family.h"
#include "mlxcel/models/text/gemma.h"
#include "mlxcel/models/text/llama.h"
#include "mlxcel/models/text/qwen2.h"
#include "mlxcel/models/text/qwen3.h"
#include "mlxcel/models/text/qwen3_moe.h"

namespace mlxcel {

namespace {

constexpr Family kLlama = models::decoder_family<models::llama>();
constexpr Family kQwen2 = models::decoder_family<models::qwen2>();
constexpr Family kQwen3 = models::decoder_family<models::qwen3>();
constexpr Family kQwen3Moe = models::decoder_family<models::qwen3_moe>();
constexpr Family kGemma = models::decoder_family<models::gemma>();

struct Built {
  ModelType type;
  const Family* family;
};

/// The families whose code exists; all other rows are known by name.
constexpr Built kBuilt[] = {
    {ModelType::llama, &kLlama},
    {ModelType::qwen2, &kQwen2},
    {ModelType::qwen3, &kQwen3},
    {ModelType::qwen3_moe, &kQwen3Moe},
    {ModelType::gemma, &kGemma},
};

constexpr size_t kCount = static_cast<size_t>(ModelType::count);

// A row too many writes past the array, which is no constant expression.
constexpr std::array<Descriptor, kCount> assemble() {
  std::array<Descriptor, kCount> all{};
  size_t at = 0;
  for (std::span<const Descriptor> rows : {
           std::span<const Descriptor>(kLlamaRows),
           std::span<const Descriptor>(kQwenRows),
           std::span<const Descriptor>(kGemmaRows),
           std::span<const Descriptor>(kMistralRows),
           std::span<const Descriptor>(kDeepseekRows),
           std::span<const Descriptor>(kAsiaRows),
           std::span<const Descriptor>(kTextRows),
           std::span<const Descriptor>(kRecurrentRows),
           std::span<const Descriptor>(kVisionRows),
           std::span<const Descriptor>(kOtherRows),
       }) {
    for (const Descriptor& row : rows) {
      all[at++] = row;
    }
  }
  for (const Built& built : kBuilt) {
    for (Descriptor& row : all) {
      if (row.type == built.type) {
        row.family = built.family;
        row.status = Status::built;
      }
    }
  }
  return all;
}

constexpr std::array<Descriptor, kCount> kRegistry = assemble();

constexpr size_t kNowhere = kCount;

// Where each type's row is.
constexpr std::array<size_t, kCount> index_types() {
  std::array<size_t, kCount> places{};
  places.fill(kNowhere);
  for (size_t i = 0; i < kCount; ++i) {
    size_t type = static_cast<size_t>(kRegistry[i].type);
    if (type < kCount) {
      places[type] = i;
    }
  }
  return places;
}

constexpr std::array<size_t, kCount> kPlaces = index_types();

template <size_t N>
constexpr bool all_differ(std::array<std::string_view, N> words, size_t count) {
  std::sort(words.begin(), words.begin() + count);
  auto end = words.begin() + count;
  return std::adjacent_find(words.begin(), end) == end;
}

constexpr bool each_type_once() {
  for (size_t place : kPlaces) {
    if (place == kNowhere) {
      return false;
    }
  }
  return true;
}

constexpr bool no_shared_keys() {
  std::array<std::string_view, 4 * kCount> keys{};
  std::array<std::string_view, kCount> ids{};
  std::array<std::string_view, kCount> names{};
  size_t count = 0;
  for (size_t i = 0; i < kCount; ++i) {
    ids[i] = kRegistry[i].id;
    names[i] = kRegistry[i].display_name;
    for (std::string_view list = kRegistry[i].model_types; !list.empty();) {
      size_t end = std::min(list.find(' '), list.size());
      keys[count++] = list.substr(0, end);
      list.remove_prefix(std::min(end + 1, list.size()));
    }
  }
  return all_differ(ids, kCount) && all_differ(names, kCount) &&
         all_differ(keys, count);
}

constexpr bool complete() {
  for (const Descriptor& row : kRegistry) {
    bool reachable = !row.model_types.empty() || !row.shared_types.empty();
    if (!reachable || row.id.empty() || row.display_name.empty() ||
        row.group.empty() || row.runtimes.empty()) {
      return false;
    }
  }
  return true;
}

constexpr bool routes_agree() {
  for (const Descriptor& row : kRegistry) {
    bool no_weights = row.weight_route == WeightRoute::none;
    bool own_loader = row.directory_route == DirectoryRoute::vlm ||
                      row.directory_route == DirectoryRoute::detector;
    if (no_weights == (row.adapters == Adapters::accepted) ||
        (own_loader && !no_weights)) {
      return false;
    }
  }
  return true;
}

constexpr bool towers_agree() {
  for (const Descriptor& row : kRegistry) {
    bool images = contains_word(row.modalities_in, "image");
    if (row.tower != Tower::none && !images) {
      return false;
    }
    if (row.text_variant != ModelType::count) {
      const Descriptor& text =
          kRegistry[kPlaces[static_cast<size_t>(row.text_variant)]];
      if (text.tower != Tower::none) {
        return false;
      }
    }
  }
  return true;
}

// The family has the function that each of its routes calls.
constexpr bool routes_have_code() {
  for (const Descriptor& row : kRegistry) {
    if (row.family == nullptr) {
      continue;
    }
    const Family& family = *row.family;
    bool own_loader = row.directory_route == DirectoryRoute::nonstandard ||
                      row.directory_route == DirectoryRoute::vlm;
    bool own_weights = row.weight_route == WeightRoute::special;
    bool builds = row.directory_route == DirectoryRoute::config_backed ||
                  row.weight_route == WeightRoute::config_backed ||
                  row.weight_route == WeightRoute::llama_family;
    if (family.tensors == nullptr || (builds && family.build == nullptr) ||
        (own_loader && family.load_directory == nullptr) ||
        (own_weights && family.load_weights == nullptr)) {
      return false;
    }
  }
  return true;
}

static_assert(each_type_once(), "every ModelType has exactly one descriptor");
static_assert(no_shared_keys(), "an id, a name or a model_type is used twice");
static_assert(complete(), "a row without a key, an id, a name or a group");
static_assert(
    routes_agree(), "weight route none and refused adapters go together"
);
static_assert(towers_agree(), "a tower where no image comes in");
static_assert(routes_have_code(), "a route without the function it calls");

std::string underscored(std::string text) {
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

template <size_t N>
bool among(const ModelType (&list)[N], ModelType type) {
  return std::find(std::begin(list), std::end(list), type) != std::end(list);
}

}  // namespace

std::span<const Descriptor> registry() {
  return kRegistry;
}

const Descriptor& descriptor(ModelType type) {
  return kRegistry[kPlaces[static_cast<size_t>(type)]];
}

const Descriptor* find_model_type(std::string_view model_type) {
  std::string key = ascii_lower(model_type);
  for (const Descriptor& row : kRegistry) {
    if (contains_word(row.model_types, key)) {
      return &row;
    }
  }
  key = underscored(key);
  for (const Descriptor& row : kRegistry) {
    if (contains_word(underscored(std::string(row.model_types)), key)) {
      return &row;
    }
  }
  return nullptr;
}

Capabilities capabilities(ModelType type) {
  return {
      among(facts::kNativeVideo, type),
      among(facts::kTensorParallel, type),
      among(facts::kPipelineParallel, type),
      among(facts::kMtp, type),
      among(facts::kDflash, type),
      among(facts::kQuantizedKv, type),
      among(facts::kPagedByDefault, type),
  };
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
    case DirectoryRoute::detector:
      return "detector";
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
