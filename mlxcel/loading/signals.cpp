#include "mlxcel/loading/signals.h"

#include <algorithm>
#include <array>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/text.h"

namespace mlxcel {

namespace {

constexpr uint64_t kSideFileLimit = 1 << 20;

using Words = std::string_view;

// Types whose every checkpoint embeds: encoders, and names that only
// embedders have.
constexpr Words kEmbeddingTypes[] = {
    "bert",
    "xlm_roberta",
    "modernbert",
    "siglip",
    "llama_bidirec",
    "llama_nemotron_vl",
    "colqwen2",
    "embedding_gemma2",
    "embedding_gemma2_text",
    "ministral3_bidirec",
};
constexpr Words kEmbeddingClasses[] = {
    "BertModel",
    "XLMRobertaModel",
    "ModernBertModel",
    "SiglipModel",
    "SiglipTextModel",
    "LlamaBidirectionalModel",
    "LlamaNemotronVLModel",
    "Lfm2BidirectionalModel",
    "Lfm2BidirectionalForMaskedLM",
    "EmbeddingGemma2Model",
    "ColIdefics3",
    "ColQwen2",
    "ColQwen2_5",
    "ColQwen2ForRetrieval",
};
constexpr Words kEncoders[] = {"bert", "xlm_roberta", "modernbert"};
constexpr Words kDrafterClasses[] = {
    "DFlashDraftModel",
    "Lfm2DSparkDraftModel",
    "DFlashLagunaForCausalLM",
    "MuseGlimmerAssistantModel",
    "Gemma4DSparkModel",
};
constexpr Words kDrafterTypes[] = {
    "muse_glimmer_assistant",
    "gemma4_assistant",
    "gemma4_unified_assistant",
};
// What may follow "For" in the name of a class; the rest is foreign.
constexpr Words kHeads[] = {
    "CausalLM",
    "ConditionalGeneration",
    "BlockDiffusion",
    "Vision2Seq",
    "ImageTextToText",
    "SequenceClassification",
    "ObjectDetection",
};

template <size_t N>
bool among(const Words (&list)[N], std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

// Eagle drafters of all kinds; Eagle is also a family of vision models.
bool is_eagle(std::string_view name) {
  return name.find("Eagle") != std::string_view::npos &&
         name.find("VL") == std::string_view::npos;
}

// "CausalLM" of "LlamaForCausalLM"; empty without a head.
std::string_view head_of(std::string_view name) {
  size_t at = name.rfind("For");
  if (at == std::string_view::npos || at == 0 || at + 3 >= name.size() ||
      !is_upper(name[at + 3])) {
    return {};
  }
  return name.substr(at + 3);
}

// Late-interaction classes are called ColSomething.
bool is_late_interaction(std::string_view name) {
  return name.size() > 3 && name.starts_with("Col") && is_upper(name[3]);
}

std::optional<Json> side_file(
    const std::string& directory, const std::string& name
) {
  std::string path = join_path(directory, name);
  if (!file_exists(path)) {
    return std::nullopt;
  }
  try {
    return Json::parse_file(path, kSideFileLimit);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void read_modules(const Json& modules, EmbeddingLayout& layout) {
  bool dense = false;
  if (!modules.is_array()) {
    return;
  }
  for (const Json& module : modules.elements()) {
    auto type = module.find("type");
    if (!type || !type->is_string()) {
      continue;
    }
    std::string_view name = type->as_string();
    if (name.ends_with(".Pooling")) {
      layout.pooling = "a pooling module in modules.json";
    } else if (name.ends_with(".SpladePooling") || name.ends_with(".SparseStaticEmbedding")) {
      layout.sparse = "a sparse module in modules.json";
    } else if (name.ends_with(".Dense")) {
      dense = true;
    }
  }
  if (dense && layout.pooling.empty()) {
    layout.per_token = "a Dense module without pooling in modules.json";
  }
}

bool is_bidirectional(const Json& config) {
  std::string name = first_architecture(config);
  std::string_view head = head_of(name);
  bool causal = name.empty() || head == "CausalLM" || name.ends_with("Model");
  return causal && (is_flag(config, "use_bidirectional_attention", true) ||
                    is_flag(config, "is_causal", false));
}

}  // namespace

std::vector<std::string> architectures(const Json& config) {
  std::vector<std::string> names;
  auto list = config.find("architectures");
  if (list && list->is_array()) {
    for (const Json& element : list->elements()) {
      names.push_back(element.is_string() ? element.as_string() : "");
    }
  }
  return names;
}

std::string first_architecture(const Json& config) {
  std::vector<std::string> names = architectures(config);
  return names.empty() ? "" : names.front();
}

bool has_architecture(const Json& config, std::string_view name) {
  std::vector<std::string> names = architectures(config);
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_colbert(std::string_view name) {
  return name.find("ColBERT") != std::string_view::npos ||
         name.find("ColBert") != std::string_view::npos;
}

std::string lower_model_type(const Json& config) {
  auto field = config.find("model_type");
  if (!field || !field->is_string()) {
    return "";
  }
  return ascii_lower(field->as_string());
}

std::string plain_model_type(const Json& config) {
  std::string type = lower_model_type(config);
  std::replace(type.begin(), type.end(), '-', '_');
  return type;
}

std::optional<int64_t> count_of(const Json& config, std::string_view key) {
  auto field = config.find(key);
  if (!field || !(field->is_number() || field->is_string())) {
    return std::nullopt;
  }
  try {
    return field->as_int();
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool is_flag(const Json& config, std::string_view key, bool value) {
  auto field = config.find(key);
  return field && field->is_bool() && field->as_bool() == value;
}

std::string drafter_marker(const Json& config) {
  if (auto block = config.find("dflash_config"); block && block->is_object()) {
    return "dflash_config";
  }
  for (const std::string& name : architectures(config)) {
    if (among(kDrafterClasses, name) || is_eagle(name)) {
      return "architectures " + quote(name);
    }
  }
  std::string type = plain_model_type(config);
  return among(kDrafterTypes, type) ? "model_type " + quote(type) : "";
}

std::string foreign_head(const Json& config) {
  std::string name = first_architecture(config);
  if (among(kEmbeddingClasses, name) || is_colbert(name)) {
    return "";
  }
  if (is_late_interaction(name)) {
    return name;
  }
  std::string_view head = head_of(name);
  if (head.empty() || among(kHeads, head)) {
    return "";
  }
  bool encoder = among(kEncoders, plain_model_type(config));
  return head == "MaskedLM" && encoder ? "" : name;
}

EmbeddingLayout embedding_layout(const std::string& directory) {
  EmbeddingLayout layout;
  if (directory.empty()) {
    return layout;
  }
  if (auto modules = side_file(directory, "modules.json")) {
    read_modules(*modules, layout);
  }
  if (layout.pooling.empty() &&
      file_exists(join_path(directory, "1_Pooling/config.json"))) {
    layout.pooling = "1_Pooling/config.json";
    layout.per_token.clear();
  }
  if (layout.pooling.empty() && layout.per_token.empty() &&
      file_exists(join_path(directory, "1_Dense/config.json"))) {
    layout.per_token = "1_Dense/config.json without a pooling";
  }
  auto settings = side_file(directory, "config_sentence_transformers.json");
  auto kind = settings ? settings->find("model_type") : std::nullopt;
  if (kind && kind->is_string()) {
    std::string text =
        "config_sentence_transformers.json: " + quote(kind->as_string());
    if (kind->as_string() == "MultiVectorEncoder") {
      layout.per_token = text;
    } else if (kind->as_string() == "SparseEncoder") {
      layout.sparse = text;
    }
  }
  return layout;
}

std::string embedding_marker(
    const Json& config, const EmbeddingLayout& layout
) {
  std::string name = first_architecture(config);
  if (among(kEmbeddingTypes, plain_model_type(config))) {
    return "its model_type";
  }
  if (among(kEmbeddingClasses, name) || is_colbert(name)) {
    return "architectures " + quote(name);
  }
  if (is_bidirectional(config)) {
    return "bidirectional attention";
  }
  for (const std::string& file :
       {layout.pooling, layout.per_token, layout.sparse}) {
    if (!file.empty()) {
      return file;
    }
  }
  return "";
}

}  // namespace mlxcel
