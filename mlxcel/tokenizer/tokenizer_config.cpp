#include "mlxcel/tokenizer/tokenizer_config.h"

#include <algorithm>

#include "mlxcel/core/file.h"
#include "mlxcel/core/json.h"
#include "mlxcel/core/numbers.h"

namespace mlxcel::tokenizer {

namespace {

constexpr uint64_t max_file = 64 << 20;  // bytes

std::string token_text(const Json& json, const char* name) {
  auto token = json.find(name);
  if (!token) {
    return "";
  }
  return token->is_object() ? token->string_or("content", "")
                            : token->as_string();
}

std::optional<bool> find_bool(const Json& json, const char* name) {
  auto value = json.find(name);
  return value ? std::optional(value->as_bool()) : std::nullopt;
}

std::optional<size_t> find_count(const Json& json, const char* name) {
  auto value = json.find(name);
  return value ? std::optional(static_cast<size_t>(value->as_int(1, INT32_MAX)))
               : std::nullopt;
}

AddedToken read_added_token(const Json& json) {
  AddedToken token;
  token.content = json.at("content").as_string();
  token.single_word = json.bool_or("single_word", false);
  token.lstrip = json.bool_or("lstrip", false);
  token.rstrip = json.bool_or("rstrip", false);
  token.normalized = json.bool_or("normalized", false);
  token.special = json.bool_or("special", false);
  return token;
}

std::vector<AddedToken> read_decoder(const Json& table) {
  std::vector<AddedToken> tokens;
  for (const auto& [key, value] : table.items()) {
    AddedToken token = read_added_token(table.at(key));
    auto id = parse_int(key);
    if (!id || *id < 0 || *id > Vocab::max_id) {
      table.at(key).reject("the key is not an id");
    }
    token.id = static_cast<int32_t>(*id);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

/// {token: id}, without flags.
std::vector<AddedToken> read_added_file(const Json& table) {
  std::vector<AddedToken> tokens;
  for (const auto& [content, value] : table.items()) {
    AddedToken token;
    token.content = content;
    token.normalized = false;
    token.id = static_cast<int32_t>(value.as_int(0, Vocab::max_id));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

std::vector<AddedToken> read_added_tokens(
    const std::optional<Json>& config, const std::string& model_dir
) {
  std::vector<AddedToken> tokens;
  std::string path = join_path(model_dir, "added_tokens.json");
  auto table = config ? config->find("added_tokens_decoder") : std::nullopt;
  if (table) {
    tokens = read_decoder(*table);
  } else if (path_exists(path)) {
    tokens = read_added_file(Json::parse_file(path, max_file));
  }
  std::stable_sort(
      tokens.begin(),
      tokens.end(),
      [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; }
  );
  return tokens;
}

/// auto_map.AutoTokenizer: a class, or a list of classes and nulls.
std::vector<std::string> read_auto_classes(const Json& json) {
  std::vector<std::string> classes;
  auto map = json.find("auto_map");
  auto entry =
      map && map->is_object() ? map->find("AutoTokenizer") : std::nullopt;
  if (entry && entry->is_string()) {
    classes.push_back(entry->as_string());
  } else if (entry && entry->is_array()) {
    for (const Json& element : entry->elements()) {
      if (element.is_string()) {
        classes.push_back(element.as_string());
      }
    }
  }
  return classes;
}

void read_bert_options(const Json& json, TokenizerConfig& config) {
  config.do_lower_case = find_bool(json, "do_lower_case");
  config.do_basic_tokenize = find_bool(json, "do_basic_tokenize");
  config.tokenize_chinese_chars = find_bool(json, "tokenize_chinese_chars");
  config.strip_accents = find_bool(json, "strip_accents");
  if (auto list = json.find("never_split")) {
    for (const Json& element : list->elements()) {
      config.never_split.push_back(element.as_string());
    }
  }
}

void read_fields(const Json& json, TokenizerConfig& config) {
  config.tokenizer_class = json.string_or("tokenizer_class", "");
  config.auto_classes = read_auto_classes(json);
  config.bos_token = token_text(json, "bos_token");
  config.eos_token = token_text(json, "eos_token");
  config.unk_token = token_text(json, "unk_token");
  config.pad_token = token_text(json, "pad_token");
  config.cls_token = token_text(json, "cls_token");
  config.sep_token = token_text(json, "sep_token");
  config.mask_token = token_text(json, "mask_token");
  config.add_bos_token = find_bool(json, "add_bos_token");
  config.add_eos_token = find_bool(json, "add_eos_token");
  config.add_prefix_space = find_bool(json, "add_prefix_space");
  config.legacy = find_bool(json, "legacy");
  config.break_around_repeated_chars =
      find_count(json, "break_around_repeated_chars_threshold");
  config.break_around_consecutive_spaces =
      find_count(json, "break_around_consecutive_spaces_threshold");
  read_bert_options(json, config);
}

}  // namespace

bool TokenizerConfig::has_class(const std::string& name) const {
  return tokenizer_class == name || std::any_of(
                                        auto_classes.begin(),
                                        auto_classes.end(),
                                        [&](const std::string& path) {
                                          return path == name ||
                                                 path.ends_with("." + name);
                                        }
                                    );
}

TokenizerConfig read_tokenizer_config(const std::string& model_dir) {
  TokenizerConfig config;
  std::string path = join_path(model_dir, "tokenizer_config.json");
  std::optional<Json> json;
  if (path_exists(path)) {
    json = Json::parse_file(path, max_file);
    read_fields(*json, config);
  }
  config.added_tokens = read_added_tokens(json, model_dir);
  return config;
}

}  // namespace mlxcel::tokenizer
