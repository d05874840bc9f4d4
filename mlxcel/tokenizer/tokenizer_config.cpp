#include "mlxcel/tokenizer/tokenizer_config.h"

#include "mlxcel/core/file.h"
#include "mlxcel/core/json.h"

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

}  // namespace

TokenizerConfig read_tokenizer_config(const std::string& model_dir) {
  TokenizerConfig config;
  std::string path = join_path(model_dir, "tokenizer_config.json");
  if (!path_exists(path)) {
    return config;
  }
  Json json = Json::parse_file(path, max_file);
  config.tokenizer_class = json.string_or("tokenizer_class", "");
  config.bos_token = token_text(json, "bos_token");
  config.eos_token = token_text(json, "eos_token");
  config.unk_token = token_text(json, "unk_token");
  config.pad_token = token_text(json, "pad_token");
  if (json.has("add_bos_token")) {
    config.add_bos_token = json.at("add_bos_token").as_bool();
  }
  return config;
}

}  // namespace mlxcel::tokenizer
