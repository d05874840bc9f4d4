#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "mlxcel/chat/template_state.h"
#include "mlxcel/core/file.h"

// Finding the template of a model directory.

namespace mlxcel {

namespace {

constexpr uint64_t kMaxConfig = uint64_t{64} << 20;
constexpr uint64_t kMaxTemplate = uint64_t{4} << 20;

using Sources = std::vector<std::pair<std::string, std::string>>;

// A string, or a list of {"name": ..., "template": ...}.
Sources named_templates(const Json& value) {
  Sources sources;
  if (value.is_string()) {
    if (!value.as_string().empty()) {
      sources.emplace_back("default", value.as_string());
    }
    return sources;
  }
  for (const Json& entry : value.elements()) {
    sources.emplace_back(
        entry.at("name").as_string(), entry.at("template").as_string()
    );
  }
  return sources;
}

Sources config_templates(const Json& config) {
  auto found = config.find("chat_template");
  return found ? named_templates(*found) : Sources();
}

// A malformed one counts as absent.
Sources json_templates(const std::string& path) {
  if (!path_exists(path)) {
    return {};
  }
  try {
    return config_templates(Json::parse_file(path, kMaxTemplate));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_input) {
      throw;
    }
    return {};
  }
}

Sources jinja_template(const std::string& path) {
  if (!path_exists(path)) {
    return {};
  }
  std::string text = read_file(path, kMaxTemplate);
  return text.empty() ? Sources() : Sources{{"default", std::move(text)}};
}

// A token is a string or an object with its `content`.
std::vector<std::pair<std::string, std::string>> special_tokens(
    const Json& config
) {
  std::vector<std::pair<std::string, std::string>> tokens;
  for (const char* name :
       {"bos_token",
        "eos_token",
        "unk_token",
        "sep_token",
        "pad_token",
        "cls_token",
        "mask_token"}) {
    auto found = config.find(name);
    if (found && found->is_object()) {
      found = found->find("content");
    }
    if (found && found->is_string()) {
      tokens.emplace_back(name, found->as_string());
    }
  }
  return tokens;
}

}  // namespace

/// Makes templates of the files of a directory.
struct TemplateFiles {
  explicit TemplateFiles(const std::string& model_dir)
      : config_path(join_path(model_dir, "tokenizer_config.json")),
        jinja_path(join_path(model_dir, "chat_template.jinja")),
        json_path(join_path(model_dir, "chat_template.json")) {
    if (path_exists(config_path)) {
      Json config = Json::parse_file(config_path, kMaxConfig);
      tokens = special_tokens(config);
      in_config = make(config_path, config_templates(config));
    }
    in_jinja = make(jinja_path, jinja_template(jinja_path));
    in_json = make(json_path, json_templates(json_path));
  }

  std::optional<ChatTemplate> choose() const {
    for (const auto* candidate : {&in_jinja, &in_json}) {
      if (*candidate && (*candidate)->renders_images()) {
        return *candidate;
      }
    }
    for (const auto* candidate : {&in_config, &in_jinja, &in_json}) {
      if (*candidate) {
        return *candidate;
      }
    }
    return std::nullopt;
  }

  std::optional<ChatTemplate> make(
      const std::string& path, const Sources& sources
  ) const {
    if (sources.empty()) {
      return std::nullopt;
    }
    auto state = std::make_shared<ChatTemplate::State>();
    state->origin = path;
    state->special_tokens = tokens;
    for (const auto& [name, source] : sources) {
      state->add(name, source);
    }
    return ChatTemplate(std::move(state));
  }

  std::string config_path;
  std::string jinja_path;
  std::string json_path;
  std::vector<std::pair<std::string, std::string>> tokens;
  std::optional<ChatTemplate> in_config;
  std::optional<ChatTemplate> in_jinja;
  std::optional<ChatTemplate> in_json;
};

std::optional<ChatTemplate> ChatTemplate::load(const std::string& model_dir) {
  return TemplateFiles(model_dir).choose();
}

}  // namespace mlxcel
