#include "mlxcel/config/config.h"

#include <nlohmann/json.hpp>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/log.h"

namespace mlxcel {

namespace {

// Far above any published config; a quantisation map of a large model with
// one entry per expert stays below a few megabytes.
constexpr uint64_t kConfigLimit = 64 << 20;
// Tokens; a hundred times the longest that was published. Block tables and
// position tables are sized by it.
constexpr int64_t kMaxWindow = int64_t{1} << 30;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

struct Literal {
  std::string_view text;
  std::string_view replacement;
};

constexpr Literal kLiterals[] = {
    {"-Infinity", "-1e38"}, {"Infinity", "1e38"}, {"NaN", "0.0"}};

// The literal that starts at `at`, or null.
const Literal* literal_at(std::string_view text, size_t at) {
  if (at > 0 && is_word(text[at - 1])) {
    return nullptr;
  }
  for (const Literal& literal : kLiterals) {
    size_t end = at + literal.text.size();
    if (text.substr(at, literal.text.size()) == literal.text &&
        (end >= text.size() || !is_word(text[end]))) {
      return &literal;
    }
  }
  return nullptr;
}

bool closes_after_space(std::string_view text, size_t at) {
  while (at < text.size() && is_space(text[at])) {
    ++at;
  }
  return at < text.size() && (text[at] == '}' || text[at] == ']');
}

// A comma with nothing before it is no trailing comma.
bool follows_value(std::string_view before) {
  size_t last = before.find_last_not_of(" \t\n\r");
  return last != std::string_view::npos &&
         std::string_view("{[,:").find(before[last]) == std::string_view::npos;
}

std::optional<Json> nested_text(const Json& config) {
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    auto nested = config.find(key);
    if (nested && nested->is_object()) {
      return nested;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string sanitize_config_text(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.substr(0, 3) == kByteOrderMark) {
    text.remove_prefix(3);
  }
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (in_string) {
      out += c;
      if (c == '\\' && at + 1 < text.size()) {
        out += text[++at];
      } else if (c == '"') {
        in_string = false;
      }
    } else if (const Literal* literal = literal_at(text, at)) {
      out += literal->replacement;
      at += literal->text.size() - 1;
    } else if (c == ',' && follows_value(out) && closes_after_space(text, at + 1)) {
      continue;
    } else {
      out += c;
      in_string = c == '"';
    }
  }
  return out;
}

Json parse_config(std::string_view text, std::string name) {
  std::string repaired = sanitize_config_text(text);
  if (repaired != text) {
    log_debug(
        name +
        ": repaired a byte-order mark, a trailing comma or a number "
        "that JSON doesn't have"
    );
  }
  Json config = Json::parse(repaired, std::move(name));
  if (!config.is_object()) {
    config.reject("expected an object, got " + config.preview());
  }
  return config;
}

Json read_config(const std::string& model_directory) {
  std::string path = join_path(model_directory, "config.json");
  if (!path_exists(path)) {
    fail(
        ErrorCode::not_found,
        "[config] " + path + ": missing; a model directory needs it"
    );
  }
  return parse_config(read_file(path, kConfigLimit), path);
}

Json text_config(const Json& config) {
  std::optional<Json> nested = nested_text(config);
  if (auto thinker = config.find("thinker_config"); !nested && thinker) {
    nested = nested_text(*thinker);
  }
  if (!nested) {
    return config;
  }
  nlohmann::ordered_json hoisted = nested->raw();
  for (const char* key : {"quantization", "quantization_config"}) {
    if (auto inherited = config.find(key); inherited && !nested->has(key)) {
      hoisted[key] = inherited->raw();
    }
  }
  constexpr const char* kTied = "tie_word_embeddings";
  if (auto tied = config.find(kTied)) {
    hoisted[kTied] = tied->raw();
  }
  // Wrapped in its own key, so that messages name text_config.hidden_size.
  nlohmann::ordered_json document;
  document[nested->path()] = std::move(hoisted);
  return Json::from(std::move(document), config.document_name())
      .at(nested->path());
}

std::vector<int64_t> eos_token_ids(const Json& config) {
  std::vector<int64_t> ids;
  auto field = config.find("eos_token_id");
  if (!field) {
    return ids;
  }
  if (field->is_array()) {
    for (const Json& element : field->elements()) {
      if (element.is_integer()) {
        ids.push_back(element.as_int());
      }
    }
  } else if (field->is_number()) {
    ids.push_back(field->as_int());
  }
  return ids;
}

int64_t context_window(const Json& config) {
  for (const Json& place : {text_config(config), config}) {
    for (const char* key :
         {"max_position_embeddings", "n_positions", "max_sequence_length"}) {
      auto field = place.find(key);
      bool number = field && (field->is_number() || field->is_string());
      if (number && field->as_double() >= 1) {
        return field->as_int(1, kMaxWindow);
      }
    }
  }
  return 0;
}

}  // namespace mlxcel
