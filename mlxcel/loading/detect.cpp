#include "mlxcel/loading/detect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"

namespace mlxcel {

namespace {

constexpr uint64_t kModulesLimit = 1 << 20;

constexpr auto kEmbeddingTypes = std::to_array<std::string_view>(
    {"bert", "xlm-roberta", "modernbert", "siglip"}
);
constexpr auto kEmbeddingClasses = std::to_array<std::string_view>({
    "BertModel",
    "XLMRobertaModel",
    "ModernBertModel",
    "SiglipModel",
    "SiglipTextModel",
    "LlamaBidirectionalModel",
    "LlamaNemotronVLModel",
    "Lfm2BidirectionalModel",
    "ColIdefics3",
    "ColQwen2_5",
    "ColQwen2ForRetrieval",
});
constexpr auto kDrafterClasses = std::to_array<std::string_view>({
    "DFlashDraftModel",
    "Lfm2DSparkDraftModel",
    "DFlashLagunaForCausalLM",
    "MuseGlimmerAssistantModel",
    "Gemma4DSparkModel",
    "LlamaForCausalLMEagle3",
});
// Heads that give neither tokens nor vectors nor pair scores.
constexpr auto kForeignHeads = std::to_array<std::string_view>({
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForRewardModel",
    "ForRanking",
    "ForMultipleChoice",
    "ForImageClassification",
});

template <size_t N>
bool among(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::vector<std::string> classes(const Json& config) {
  std::vector<std::string> names;
  auto list = config.find("architectures");
  if (list && list->is_array()) {
    for (const Json& element : list->elements()) {
      names.push_back(element.is_string() ? element.as_string() : "");
    }
  }
  return names;
}

std::string first_class(const Json& config) {
  std::vector<std::string> names = classes(config);
  return names.empty() ? "" : names.front();
}

std::string lower_model_type(const Json& config) {
  auto field = config.find("model_type");
  if (!field || !field->is_string()) {
    return "";
  }
  std::string type = field->as_string();
  for (char& c : type) {
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    }
  }
  return type;
}

// modules.json with a pooling module; an unreadable file does not count.
bool has_pooling_module(const std::string& directory) {
  std::string path = join_path(directory, "modules.json");
  if (!file_exists(path)) {
    return false;
  }
  try {
    Json modules = Json::parse_file(path, kModulesLimit);
    if (!modules.is_array()) {
      return false;
    }
    for (const Json& module : modules.elements()) {
      auto type = module.find("type");
      if (type && type->is_string() &&
          type->as_string().ends_with(".Pooling")) {
        return true;
      }
    }
  } catch (const Error&) {
    return false;
  }
  return false;
}

bool is_bidirectional(const Json& config) {
  auto flag = [&](const char* key, bool value) {
    auto field = config.find(key);
    return field && field->is_bool() && field->as_bool() == value;
  };
  return flag("use_bidirectional_attention", true) || flag("is_causal", false);
}

void refuse_drafter(const Json& config) {
  std::string marker;
  if (auto block = config.find("dflash_config"); block && block->is_object()) {
    marker = "dflash_config";
  }
  for (const std::string& name : classes(config)) {
    if (among(kDrafterClasses, name)) {
      marker = "architectures " + name;
    }
  }
  if (!marker.empty()) {
    fail(
        ErrorCode::unsupported,
        fmt::format(
            "[config] {}: this is a drafter ({}): it has no embedding or head "
            "of its own and borrows the target's. Give a full model as the "
            "model and this directory as the draft model",
            config.document_name(),
            marker
        )
    );
  }
}

void refuse_foreign_head(const Json& config) {
  std::string name = first_class(config);
  for (std::string_view suffix : kForeignHeads) {
    if (name.ends_with(suffix)) {
      config.at("architectures")
          .reject(
              fmt::format("{} neither generates, embeds nor scores pairs", name)
          );
    }
  }
}

}  // namespace

ModelKind model_kind(const std::string& directory, const Json& config) {
  refuse_drafter(config);
  refuse_foreign_head(config);
  if (first_class(config).ends_with("ForSequenceClassification")) {
    return ModelKind::reranker;
  }
  return embedding_marker(directory, config).empty() ? ModelKind::generation
                                                     : ModelKind::embedding;
}

std::string embedding_marker(const std::string& directory, const Json& config) {
  if (among(kEmbeddingTypes, lower_model_type(config))) {
    return "its model_type";
  }
  if (among(kEmbeddingClasses, first_class(config))) {
    return "architectures " + first_class(config);
  }
  if (is_bidirectional(config)) {
    return "bidirectional attention";
  }
  if (has_pooling_module(directory)) {
    return "a pooling module in modules.json";
  }
  return file_exists(join_path(directory, "1_Pooling/config.json"))
             ? "1_Pooling/config.json"
             : "";
}

ModelType get_model_type(const Json& config) {
  auto field = config.find("model_type");
  if (!field || !field->is_string()) {
    fail(
        ErrorCode::invalid_input,
        fmt::format(
            "[config] model_type: the key is missing or not a string (in {})",
            config.document_name()
        )
    );
  }
  const Descriptor* found = find_model_type(field->as_string());
  if (found == nullptr) {
    fail(
        ErrorCode::unsupported,
        fmt::format(
            "[config] model_type {} is not a supported architecture; `mlxcel "
            "arch` lists those that are (in {})",
            quote(field->as_string()),
            config.document_name()
        )
    );
  }
  return found->type;
}

}  // namespace mlxcel
