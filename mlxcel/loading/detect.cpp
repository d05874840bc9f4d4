#include "mlxcel/loading/detect.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "mlxcel/config/config.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/loading/guards.h"
#include "mlxcel/loading/signals.h"
#include "mlxcel/loading/towers.h"
#include "mlxcel/weights/shards.h"

namespace mlxcel {

namespace {

constexpr const char* kKokoroWeights = "kokoro-v1_0.safetensors";
constexpr const char* kYoloTensor = "model.23.one2one_cv2.0.2.weight";
constexpr std::string_view kCrossEncoders = "bert xlm_roberta modernbert";
constexpr std::string_view kOtherDetectors =
    "rt_detr rt_detr_resnet d_fine rfdetr rf_detr yolos detr "
    "conditional_detr deformable_detr yolo11 yolov8";

/// One checkpoint on its way through the rules.
struct Subject {
  const std::string& directory;
  const Json& config;
  EmbeddingLayout layout;
};

[[noreturn]] void refuse(const Json& config, const std::string& why) {
  fail(
      ErrorCode::unsupported,
      fmt::format("[config] {}: {}", config.document_name(), why)
  );
}

std::string type_of(const Json& config) {
  auto field = config.find("model_type");
  return field && field->is_string() ? quote(field->as_string()) : "none";
}

std::string class_of(const Json& config) {
  std::string name = first_architecture(config);
  return name.empty() ? "none" : quote(name);
}

Detection found(ModelType type) {
  const Descriptor& row = descriptor(type);
  return {type, kind_of(row.category), row.tower != Tower::none, "", ""};
}

void refuse_drafter(const Json& config) {
  std::string marker = drafter_marker(config);
  if (!marker.empty()) {
    refuse(
        config,
        fmt::format(
            "this is a drafter ({}): it has no embedding or head of its own "
            "and borrows the target's. Pass a full model as the model and "
            "this directory as the draft model",
            marker
        )
    );
  }
}

bool is_kokoro(const Subject& subject) {
  std::string type = lower_model_type(subject.config);
  bool own_name = type.empty() || type == "kokoro";
  if (own_name && (subject.config.has("istftnet") || type == "kokoro")) {
    return true;
  }
  return !subject.directory.empty() &&
         file_exists(join_path(subject.directory, kKokoroWeights));
}

std::optional<ModelType> detector(const Json& config) {
  std::string type = plain_model_type(config);
  if (type == "rt_detr_v2" ||
      has_architecture(config, "RTDetrV2ForObjectDetection")) {
    return ModelType::rt_detr_v2;
  }
  if (type == "yolo26" ||
      has_architecture(config, "Yolo26ForObjectDetection")) {
    return ModelType::yolo26;
  }
  if (contains_word(kOtherDetectors, type) ||
      type.starts_with("pp_doclayout") ||
      first_architecture(config).ends_with("ForObjectDetection")) {
    refuse(
        config,
        fmt::format(
            "the detector model_type {} (architectures {}) is not supported; "
            "rt_detr_v2 and yolo26 are",
            type_of(config),
            class_of(config)
        )
    );
  }
  return std::nullopt;
}

[[noreturn]] void refuse_reranker(const Json& config) {
  refuse(
      config,
      fmt::format(
          "a classifier or reranker of model_type {} (architectures {}) is "
          "not supported; cross-encoders (...ForSequenceClassification) of "
          "bert, xlm-roberta and modernbert are, and generative rerankers of "
          "qwen3 and qwen3_vl when a reranker is asked for",
          type_of(config),
          class_of(config)
      )
  );
}

bool is_classifier(const Json& config) {
  return first_architecture(config).ends_with("ForSequenceClassification");
}

Detection cross_encoder(const Json& config) {
  if (!contains_word(kCrossEncoders, plain_model_type(config))) {
    refuse_reranker(config);
  }
  guard_xlm_roberta(config);
  return found(ModelType::sequence_classifier);
}

// Late interaction needs its class or an explicit multi-vector config.
bool is_multi_vector(const Subject& subject) {
  std::string name = first_architecture(subject.config);
  return name.starts_with("Col") || !subject.layout.per_token.empty() ||
         is_colbert(name);
}

ModelType colqwen_type(const Json& config) {
  auto backbone = config.find("vlm_config");
  std::string type = backbone ? plain_model_type(*backbone) : "";
  if (!type.empty() && type != "qwen2_vl" && type != "qwen2_5_vl") {
    backbone->at("model_type")
        .reject(fmt::format(
            "ColQwen on {} is not supported, only on qwen2_vl and qwen2_5_vl",
            type_of(*backbone)
        ));
  }
  return type == "qwen2_vl" ? ModelType::col_qwen2 : ModelType::col_qwen2_5;
}

struct EmbeddingForm {
  std::string_view types;
  ModelType single;  // count: none
  ModelType multi;
};

constexpr EmbeddingForm kEmbeddingForms[] = {
    {"bert", ModelType::bert, ModelType::count},
    {"xlm_roberta", ModelType::xlm_roberta, ModelType::count},
    {"modernbert", ModelType::modernbert, ModelType::count},
    {"siglip siglip_text_model", ModelType::siglip_text, ModelType::count},
    {"gemma3 gemma3_text", ModelType::gemma3_embedding, ModelType::count},
    {"embedding_gemma2 embedding_gemma2_text",
     ModelType::embedding_gemma2,
     ModelType::count},
    {"qwen3", ModelType::qwen3_embedding, ModelType::count},
    {"qwen3_vl", ModelType::qwen3_vl_embedding, ModelType::count},
    {"lfm2", ModelType::lfm2_embedding, ModelType::lfm2_colbert},
    {"ministral3 ministral3_bidirec",
     ModelType::ministral3_embedding,
     ModelType::count},
    {"llama", ModelType::llama_embedding, ModelType::count},
    {"llama_bidirec", ModelType::llama_bidirec, ModelType::count},
    {"llama_nemotron_vl",
     ModelType::llama_nemotron_vl_embedding,
     ModelType::count},
    {"idefics3", ModelType::idefics3_embedding, ModelType::col_idefics3},
    {"qwen2_5_vl", ModelType::qwen2_5_vl_embedding, ModelType::col_qwen2_5},
    {"qwen2_vl", ModelType::count, ModelType::col_qwen2},
};

// The embedding variant of a type, `count` if it has none of that form.
ModelType embedding_type(const Subject& subject) {
  std::string type = plain_model_type(subject.config);
  if (type == "colqwen2") {
    return colqwen_type(subject.config);
  }
  if (first_architecture(subject.config) == "LlamaBidirectionalModel" &&
      type == "llama") {
    return ModelType::llama_bidirec;
  }
  for (const EmbeddingForm& form : kEmbeddingForms) {
    if (contains_word(form.types, type)) {
      return is_multi_vector(subject) ? form.multi : form.single;
    }
  }
  return ModelType::count;
}

[[noreturn]] void refuse_embedder(
    const Subject& subject, const std::string& marker
) {
  const char* form = !subject.layout.sparse.empty() ? "a sparse embedding"
                     : is_multi_vector(subject)     ? "a late-interaction"
                                                    : "an embedding";
  refuse(
      subject.config,
      fmt::format(
          "{} makes this {} checkpoint, and there is no such family for "
          "model_type {} (architectures {}); `mlxcel arch` lists the "
          "supported ones under Embedding",
          marker,
          form,
          type_of(subject.config),
          class_of(subject.config)
      )
  );
}

std::optional<Detection> embedder(const Subject& subject) {
  if (lower_model_type(subject.config).empty()) {
    return std::nullopt;
  }
  std::string marker = embedding_marker(subject.config, subject.layout);
  if (marker.empty()) {
    return std::nullopt;
  }
  if (!subject.layout.sparse.empty()) {
    refuse_embedder(subject, subject.layout.sparse);
  }
  ModelType type = embedding_type(subject);
  if (type == ModelType::count) {
    refuse_embedder(subject, marker);
  }
  if (type == ModelType::xlm_roberta) {
    guard_xlm_roberta(subject.config);
  }
  return found(type);
}

// MiniMax M2 and MiniMax Text 01 share a type; lightning layers, or the class,
// make the latter.
bool has_lightning_layers(const Json& config) {
  auto list = config.find("attn_type_list");
  if (list && list->is_array()) {
    for (const Json& kind : list->elements()) {
      if (kind.is_integer() && kind.as_int() == 0) {
        return true;
      }
    }
  }
  return false;
}

ModelType minimax_type(const Json& config) {
  if (has_architecture(config, "MiniMaxM2ForCausalLM")) {
    return ModelType::minimax;
  }
  for (const std::string& name : architectures(config)) {
    if (name == "MiniMaxForCausalLM" || name.starts_with("MiniMaxText01")) {
      return ModelType::minimax_text01;
    }
  }
  return has_lightning_layers(config) ? ModelType::minimax_text01
                                      : ModelType::minimax;
}

// Types that several rows share, decided by a field or a class.
std::optional<ModelType> conditional_type(const Json& config) {
  std::string type = plain_model_type(config);
  auto many = [&](const char* key) {
    return count_of(config, key).value_or(0) > 1;
  };
  if (type == "phi" || type == "phi_msft") {
    return many("num_local_experts") ? ModelType::phixtral : ModelType::phi;
  }
  if (type == "hunyuan") {
    return many("num_experts") ? ModelType::hunyuan_moe
                               : ModelType::hunyuan_v1_dense;
  }
  if (type == "llava" || type == "llava_next") {
    auto text = config.find("text_config");
    return text && lower_model_type(*text) == "granite"
               ? ModelType::granite_vision_vlm
               : ModelType::llava_vlm;
  }
  if (type == "minimax") {
    return minimax_type(config);
  }
  if (type == "deepseek_vl_v2" || type == "deepseek_vl2") {
    if (has_architecture(config, "DeepseekOCRForCausalLM")) {
      return ModelType::deepseek_ocr_vlm;
    }
    if (has_architecture(config, "DeepseekOCR2ForCausalLM")) {
      return ModelType::deepseek_ocr2_vlm;
    }
  }
  return std::nullopt;
}

void run_guards(
    ModelType type, const std::string& directory, const Json& config
) {
  switch (type) {
    case ModelType::iquest_coder:
      return guard_iquest(config);
    case ModelType::iquest_loop_coder:
      return guard_iquest_loop(config);
    case ModelType::qwen3_5:
    case ModelType::qwen3_5_moe:
    case ModelType::qwen3_5_vlm:
    case ModelType::qwen3_5_moe_vlm:
      return guard_qwen3_5(config);
    case ModelType::llava_vlm:
      return guard_llava(config);
    case ModelType::inkling:
    case ModelType::inkling_vlm:
      return guard_inkling(directory, config);
    default:
      return;
  }
}

// The row by architecture override, condition or table.
ModelType row_of(const Json& config) {
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
  if (has_architecture(config, "IQuestLoopCoderForCausalLM")) {
    return ModelType::iquest_loop_coder;
  }
  std::string type = lower_model_type(config);
  if ((type == "llama" || type == "mistral") &&
      has_architecture(config, "IQuestCoderForCausalLM")) {
    return ModelType::iquest_coder;
  }
  if (auto decided = conditional_type(config)) {
    return *decided;
  }
  const Descriptor* row = find_model_type(type);
  if (row == nullptr) {
    fail(
        ErrorCode::unsupported,
        fmt::format(
            "[config] model_type {} is not a known architecture; `mlxcel "
            "arch` lists those that are (in {})",
            quote(field->as_string()),
            config.document_name()
        )
    );
  }
  if (row->category == Category::embedding) {
    refuse(
        config,
        fmt::format(
            "model_type {} is known as an embedding model only, and nothing "
            "here marks it as one: no pooling in modules.json, no "
            "1_Pooling/config.json, no embedding class in architectures",
            quote(field->as_string())
        )
    );
  }
  return row->type;
}

Detection generator(const std::string& directory, const Json& config) {
  Detection detection = found(row_of(config));
  run_guards(detection.type, directory, config);
  const Descriptor& row = descriptor(detection.type);
  if (row.tower == Tower::none) {
    return detection;
  }
  TowerAnswer tower = find_tower(directory, config, row);
  if (!tower.present && row.text_variant != ModelType::count) {
    detection = found(row.text_variant);
  }
  detection.tower = tower.present;
  detection.tower_reason = std::move(tower.reason);
  return detection;
}

Detection as_embedder(const Subject& subject) {
  if (auto detection = embedder(subject)) {
    return *detection;
  }
  ModelType type = embedding_type(subject);
  if (type == ModelType::count) {
    refuse(
        subject.config,
        fmt::format(
            "{} is no embedding model (model_type {}, architectures {}): a "
            "pooling in modules.json, a 1_Pooling/config.json or an embedding "
            "class in architectures would make it one",
            descriptor(row_of(subject.config)).display_name,
            type_of(subject.config),
            class_of(subject.config)
        )
    );
  }
  Detection detection = found(type);
  detection.notice = fmt::format(
      "nothing in the checkpoint says that it embeds; as embeddings were asked "
      "for, it is taken as {} with the default pooling of that family",
      descriptor(type).display_name
  );
  return detection;
}

Detection as_reranker(const Subject& subject) {
  const Json& config = subject.config;
  if (is_classifier(config)) {
    Detection detection = cross_encoder(config);
    int64_t labels = label_count(subject.directory, config);
    if (labels != 1) {
      refuse(
          config,
          fmt::format(
              "a reranker has exactly one label; this classifier has {}", labels
          )
      );
    }
    return detection;
  }
  std::string type = plain_model_type(config);
  if (type != "qwen3" && type != "qwen3_vl") {
    refuse_reranker(config);
  }
  Detection detection = generator(subject.directory, config);
  detection.kind = ModelKind::reranker;
  return detection;
}

[[noreturn]] void refuse_as_detector(
    const Detection& detection, const Json& config
) {
  const char* where = detection.kind == ModelKind::embedding  ? "embed"
                      : detection.kind == ModelKind::reranker ? "rerank"
                      : detection.kind == ModelKind::speech_to_text ||
                              detection.kind == ModelKind::text_to_speech
                          ? "serve"
                          : "generate";
  refuse(
      config,
      fmt::format(
          "model_type {} is {}, which finds no objects; `mlxcel {}` is for it. "
          "`mlxcel detect` takes rt_detr_v2 and yolo26",
          type_of(config),
          descriptor(detection.type).display_name,
          where
      )
  );
}

Detection automatic(const Subject& subject) {
  if (is_classifier(subject.config)) {
    return cross_encoder(subject.config);
  }
  if (auto detection = embedder(subject)) {
    return *detection;
  }
  return generator(subject.directory, subject.config);
}

}  // namespace

ModelKind kind_of(Category category) {
  switch (category) {
    case Category::embedding:
      return ModelKind::embedding;
    case Category::reranker:
      return ModelKind::reranker;
    case Category::asr:
      return ModelKind::speech_to_text;
    case Category::tts:
      return ModelKind::text_to_speech;
    case Category::detection:
      return ModelKind::object_detection;
    default:
      return ModelKind::generation;
  }
}

std::string_view kind_name(ModelKind kind) {
  switch (kind) {
    case ModelKind::generation:
      return "generation";
    case ModelKind::embedding:
      return "embedding";
    case ModelKind::reranker:
      return "reranker";
    case ModelKind::speech_to_text:
      return "speech_to_text";
    case ModelKind::text_to_speech:
      return "text_to_speech";
    case ModelKind::object_detection:
      return "object_detection";
  }
  __builtin_unreachable();
}

Detection detect_model(
    const std::string& directory, const Json& config, Task task
) {
  refuse_drafter(config);
  Subject subject{directory, config, embedding_layout(directory)};
  std::optional<Detection> own;
  if (is_kokoro(subject)) {
    own = found(ModelType::kokoro);
  } else if (auto type = detector(config)) {
    own = found(*type);
  }
  if (!own) {
    if (std::string head = foreign_head(config); !head.empty()) {
      config.at("architectures")
          .reject(fmt::format(
              "{} neither generates, embeds, scores pairs nor finds "
              "objects in a way that is supported",
              quote(head)
          ));
    }
  }
  switch (task) {
    case Task::automatic:
      return own ? *own : automatic(subject);
    case Task::embed:
      return as_embedder(subject);
    case Task::rerank:
      return as_reranker(subject);
    case Task::find_objects:
      break;
  }
  Detection detection = own ? *own : automatic(subject);
  if (detection.kind != ModelKind::object_detection) {
    refuse_as_detector(detection, config);
  }
  return detection;
}

Detection detect_directory(const std::string& directory, Task task) {
  if (!path_exists(join_path(directory, "config.json"))) {
    auto names = tensor_names(directory);
    if (names &&
        std::binary_search(names->begin(), names->end(), kYoloTensor)) {
      return found(ModelType::yolo26);
    }
    if (file_exists(join_path(directory, kKokoroWeights))) {
      return found(ModelType::kokoro);
    }
  }
  return detect_model(directory, read_config(directory), task);
}

ModelType get_model_type(const Json& config) {
  return detect_model("", config).type;
}

ModelType mistral3_decoder(const Json& config) {
  auto text = config.find("text_config");
  std::string type = text ? plain_model_type(*text) : "";
  return type == "ministral3" ? ModelType::ministral3
         : type == "mistral4" ? ModelType::mistral4
                              : ModelType::llama;
}

int64_t label_count(const std::string& directory, const Json& config) {
  if (!directory.empty()) {
    for (const char* name :
         {"classifier.weight", "classifier.out_proj.weight", "score.weight"}) {
      auto shape = tensor_shape(directory, name);
      if (shape && !shape->empty()) {
        return shape->front();
      }
    }
  }
  if (auto labels = config.find("num_labels")) {
    return labels->as_int(1);
  }
  auto names = config.find("id2label");
  return names && names->is_object() ? static_cast<int64_t>(names->size()) : 1;
}

}  // namespace mlxcel
