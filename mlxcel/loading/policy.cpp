#include "mlxcel/loading/policy.h"

#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/core/error.h"

namespace mlxcel {

namespace {

std::string_view task_of(Category category) {
  switch (category) {
    case Category::embedding:
      return "an embedding model, which `mlxcel embed` and the embeddings "
             "route serve";
    case Category::reranker:
      return "a reranker, which `mlxcel rerank` and the rerank route serve";
    case Category::asr:
      return "a speech-to-text model, which the audio routes serve";
    case Category::tts:
      return "a text-to-speech model, which the speech route serves";
    case Category::detection:
      return "an object detector, which `mlxcel detect` runs";
    default:
      return "served elsewhere";
  }
}

// Where a checkpoint that does not generate belongs.
std::string place_of(const Descriptor& row, const std::string& directory) {
  switch (kind_of(row.category)) {
    case ModelKind::embedding:
      return fmt::format(
          "an embedding model: it is served on the embeddings route "
          "(/v1/embeddings) by `mlxcel serve -m {0}` and by `mlxcel embed -m "
          "{0}`; chat is not available",
          directory
      );
    case ModelKind::reranker:
      return fmt::format(
          "a reranker: it is served on the rerank route (/v1/rerank) by "
          "`mlxcel serve -m {0}` or `--reranker-model {0}`, and by `mlxcel "
          "rerank -m {0}`; chat is not available",
          directory
      );
    case ModelKind::speech_to_text:
      return fmt::format(
          "a speech-to-text model: `mlxcel serve -m {}` picks it up by itself "
          "and serves /v1/audio/transcriptions and /v1/audio/translations; "
          "chat is not available",
          directory
      );
    case ModelKind::text_to_speech:
      return fmt::format(
          "a text-to-speech model: `mlxcel serve -m {}` picks it up by itself "
          "and serves /v1/audio/speech; chat is not available",
          directory
      );
    case ModelKind::object_detection:
      return fmt::format(
          "an object detector: `mlxcel detect -m {}` runs it; it generates "
          "nothing",
          directory
      );
    case ModelKind::generation:
      break;
  }
  return "";
}

std::string not_built(const Descriptor& row) {
  return fmt::format(
      "this build recognises {} ({}) but can't run it; `mlxcel arch --built` "
      "lists what it runs",
      row.display_name,
      row.id
  );
}

}  // namespace

ModelLoadPolicy model_load_policy(ModelType type) {
  const Descriptor& row = descriptor(type);
  return {type, row.directory_route, row.weight_route, adapter_refusal(type)};
}

std::string adapter_refusal(ModelType type) {
  const Descriptor& row = descriptor(type);
  switch (row.adapters) {
    case Adapters::accepted:
      return "";
    case Adapters::not_yet:
      return fmt::format(
          "{} cannot be loaded with LoRA adapters yet", row.display_name
      );
    case Adapters::unsupported:
      return fmt::format(
          "{} cannot be loaded with LoRA adapters; load it without them",
          row.display_name
      );
    case Adapters::other_task:
      return fmt::format(
          "{} takes no LoRA adapters: it is {}",
          row.display_name,
          task_of(row.category)
      );
  }
  __builtin_unreachable();
}

void require_built(ModelType type, const std::string& where) {
  const Descriptor& row = descriptor(type);
  if (row.status != Status::built) {
    fail(
        ErrorCode::unsupported,
        fmt::format("[loading] {}: {}", where, not_built(row))
    );
  }
}

void require_generation(
    const Detection& detection, const std::string& directory
) {
  const Descriptor& row = descriptor(detection.type);
  if (kind_of(row.category) == ModelKind::generation) {
    return;
  }
  fail(
      ErrorCode::unsupported,
      fmt::format(
          "[loading] {}: {} is {}{}",
          directory,
          row.display_name,
          place_of(row, directory),
          row.status == Status::built ? "" : ". And " + not_built(row)
      )
  );
}

void require_adapters(ModelType type) {
  std::string refusal = adapter_refusal(type);
  if (!refusal.empty()) {
    fail(ErrorCode::unsupported, "[adapters] " + refusal);
  }
}

void require_tensor_parallel(ModelType type) {
  if (!capabilities(type).tensor_parallel) {
    const Descriptor& row = descriptor(type);
    fail(
        ErrorCode::unsupported,
        fmt::format(
            "[loading] {} ({}) cannot be cut over several devices (tensor "
            "parallel)",
            row.display_name,
            row.id
        )
    );
  }
}

void require_sub_configs(ModelType type, const Json& config) {
  const Descriptor& row = descriptor(type);
  std::string_view keys = row.needs;
  while (!keys.empty()) {
    size_t end = std::min(keys.find(' '), keys.size());
    std::string key(keys.substr(0, end));
    keys.remove_prefix(std::min(end + 1, keys.size()));
    auto field = config.find(key);
    if (!field || !field->is_object()) {
      fail(
          ErrorCode::invalid_input,
          fmt::format(
              "[config] {}: {} is built from this object, and it is missing "
              "(in {})",
              key,
              row.display_name,
              config.document_name()
          )
      );
    }
  }
}

std::string no_tower_message(const std::string& path) {
  return fmt::format(
      "model {} was loaded without a vision tower (text-only checkpoint)", path
  );
}

}  // namespace mlxcel
