#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "mlxcel/chat/builtin_templates.h"
#include "mlxcel/chat/template_state.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/os.h"

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

constexpr const char* kAdditional = "additional_chat_templates";

// NAME.jinja in that folder is the template NAME (transformers,
// CHAT_TEMPLATE_DIR).
void add_additional(ChatTemplate::State& state, const std::string& model_dir) {
  constexpr std::string_view kEnding = ".jinja";
  std::string folder = join_path(model_dir, kAdditional);
  if (!directory_exists(folder)) {
    return;
  }
  for (const std::string& file : os::list_directory(folder)) {
    std::string_view name = file;
    if (!name.ends_with(kEnding)) {
      continue;
    }
    name.remove_suffix(kEnding.size());
    std::string path = join_path(folder, file);
    state.add(std::string(name), read_file(path, kMaxTemplate), path);
  }
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

using StatePtr = std::shared_ptr<ChatTemplate::State>;

StatePtr make_state(const std::string& path, const Sources& sources) {
  auto state = std::make_shared<ChatTemplate::State>();
  state->origin = path;
  for (const auto& [name, source] : sources) {
    state->add(
        name,
        source,
        name == "default" ? path : fmt::format("{}#{}", path, name)
    );
  }
  return state;
}

/// The places of a directory where a template may stand.
class TemplateFiles {
 public:
  explicit TemplateFiles(const std::string& model_dir) : directory_(model_dir) {
    std::string path = join_path(model_dir, "tokenizer_config.json");
    if (path_exists(path)) {
      config_ = Json::parse_file(path, kMaxConfig);
      tokens_ = special_tokens(*config_);
      in_config_ = make(path, config_templates(*config_));
    }
    path = join_path(model_dir, "chat_template.jinja");
    in_files_.push_back(make(path, jinja_template(path)));
    for (const char* name : {"chat_template.json", "processor_config.json"}) {
      path = join_path(model_dir, name);
      in_files_.push_back(make(path, json_templates(path)));
    }
  }

  /// What is declared, or what is known of the family, or null.
  StatePtr choose() const {
    std::string type =
        config_ ? config_->string_or("chat_template_type", "") : "";
    if (StatePtr state = built_in(type)) {
      return with_tokens(state);
    }
    StatePtr state = declared();
    if (directory_exists(join_path(directory_, kAdditional))) {
      state = state ? state : make_state(directory_, {});
      add_additional(*state, directory_);
    }
    if (!state || state->variants.empty()) {
      state = built_in(model_type());
    }
    return state ? with_tokens(state) : nullptr;
  }

  StatePtr with_tokens(StatePtr state) const {
    state->special_tokens = tokens_;
    return state;
  }

 private:
  static StatePtr make(const std::string& path, const Sources& sources) {
    return sources.empty() ? nullptr : make_state(path, sources);
  }

  StatePtr declared() const {
    for (const StatePtr& candidate : in_files_) {
      if (candidate && ChatTemplate(candidate).renders_images()) {
        return candidate;
      }
    }
    if (in_config_) {
      return in_config_;
    }
    for (const StatePtr& candidate : in_files_) {
      if (candidate) {
        return candidate;
      }
    }
    return nullptr;
  }

  std::string model_type() const {
    std::string path = join_path(directory_, "config.json");
    if (!path_exists(path)) {
      return "";
    }
    return Json::parse_file(path, kMaxConfig).string_or("model_type", "");
  }

  StatePtr built_in(const std::string& family) const {
    const BuiltInTemplate* found = find_built_in_template(family);
    if (!found) {
      return nullptr;
    }
    StatePtr state = make_state(
        fmt::format("{}: built-in template of {}", directory_, family),
        {{"default", found->source}}
    );
    state->parses_arguments = found->parses_arguments;
    return state;
  }

  std::string directory_;
  std::optional<Json> config_;
  std::vector<std::pair<std::string, std::string>> tokens_;
  StatePtr in_config_;
  std::vector<StatePtr> in_files_;
};

}  // namespace

std::optional<ChatTemplate> ChatTemplate::load(const std::string& model_dir) {
  if (auto state = TemplateFiles(model_dir).choose()) {
    return ChatTemplate(std::move(state));
  }
  return std::nullopt;
}

ChatTemplate ChatTemplate::load_file(
    const std::string& path, const std::string& model_dir
) {
  auto state = make_state(path, {{"default", read_file(path, kMaxTemplate)}});
  return ChatTemplate(
      model_dir.empty() ? state : TemplateFiles(model_dir).with_tokens(state)
  );
}

}  // namespace mlxcel
