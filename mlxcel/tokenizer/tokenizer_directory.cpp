#include "mlxcel/tokenizer/tokenizer_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/json.h"
#include "mlxcel/core/os.h"
#include "mlxcel/tokenizer/files/file_formats.h"
#include "mlxcel/tokenizer/files/tokenizer_json.h"

namespace mlxcel::tokenizer {

namespace {

constexpr uint64_t max_config = 64 << 20;  // bytes
constexpr uint64_t max_file = uint64_t{1} << 30;
constexpr const char* moondream_tokenizer = "moondream/starmie-v1";

/// A directory while its tokenizer is looked for.
class Search {
 public:
  Search(const std::string& model_dir, TokenizerConfig& config)
      : dir_(model_dir), config_(config) {}

  Parts read() {
    refuse_stale_moondream();
    if (path_exists(path("tokenizer.json"))) {
      return read_json();
    }
    Parts parts = read_other();
    // Only a tokenizer.json can have lost its BOS.
    config_.add_bos_token = false;
    return parts;
  }

 private:
  Parts read_other() {
    if (path_exists(path("tokenizer.model"))) {
      return read_sentencepiece(path("tokenizer.model"), config_);
    }
    if (auto file = find_tiktoken()) {
      return read_tiktoken(*file, config_, tiktoken_family(*file));
    }
    if (path_exists(path("tokenizer.jsonl"))) {
      return read_plamo(path("tokenizer.jsonl"), config_);
    }
    if (has_qwen2_files()) {
      return read_qwen2_files(dir_, config_);
    }
    if (has_bert_file()) {
      return read_bert_files(path("vocab.txt"), config_);
    }
    none_found();
  }

  std::string path(const char* name) const {
    return join_path(dir_, name);
  }

  /// Empty without a config.json that says.
  const std::string& model_type() {
    if (!model_type_) {
      model_type_ = "";
      if (file_exists(path("config.json"))) {
        Json json = Json::parse_file(path("config.json"), max_config);
        model_type_ = json.string_or("model_type", "");
      }
    }
    return *model_type_;
  }

  bool holds(const char* file, const char* text) const {
    return file_exists(path(file)) &&
           read_file(path(file), max_file).find(text) != std::string::npos;
  }

  /// Its code names another tokenizer than the file beside it is.
  void refuse_stale_moondream() {
    if (!holds("moondream.py", moondream_tokenizer) ||
        (model_type() != "moondream1" && model_type() != "moondream2") ||
        holds("tokenizer.json", "<|md_reserved_0|>")) {
      return;
    }
    needs_moondream_tokenizer(
        "these weights were trained with another tokenizer than the "
        "tokenizer.json beside them"
    );
  }

  [[noreturn]] void needs_moondream_tokenizer(const char* why) const {
    fail(
        ErrorCode::not_found,
        fmt::format(
            "[tokenizer] {}: {}; download tokenizer.json of {} and put it into "
            "this directory",
            dir_,
            why,
            moondream_tokenizer
        )
    );
  }

  Parts read_json() {
    Parts parts = read_tokenizer_json(path("tokenizer.json"));
    if (is_diffusion_gemma()) {
      // They frame what is parsed out of the decoded text.
      for (const char* marker :
           {"<|tool_call>",
            "<tool_call|>",
            "<|\"|>",
            "<|channel>",
            "<channel|>"}) {
        parts.added_tokens.make_ordinary(marker);
      }
    }
    return parts;
  }

  bool is_diffusion_gemma() {
    // A fault of config.json that its own reader mends is none here.
    try {
      return model_type() == "diffusion_gemma" ||
             model_type() == "diffusion_gemma_text";
    } catch (const Error&) {
      return holds("config.json", "\"diffusion_gemma");
    }
  }

  std::optional<std::string> find_tiktoken() const {
    if (path_exists(path("tiktoken.model"))) {
      return path("tiktoken.model");
    }
    std::vector<std::string> names;
    if (directory_exists(dir_)) {
      names = os::list_directory(dir_);
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      if (name.ends_with(".tiktoken")) {
        return join_path(dir_, name);
      }
    }
    return std::nullopt;
  }

  TiktokenFamily tiktoken_family(const std::string& file) {
    const std::string& type = model_type();
    if (type == "kimi_k3" || config_.has_class("TikTokenTokenizer") ||
        (type == "kimi_linear" && base_name(file) == "tiktoken.model")) {
      return TiktokenFamily::kimi;
    }
    return config_.has_class("QWenTokenizer") ? TiktokenFamily::qwen
                                              : TiktokenFamily::hunyuan;
  }

  /// Other families share these names of files, not the rules.
  bool has_qwen2_files() const {
    return (config_.tokenizer_class == "Qwen2Tokenizer" ||
            config_.tokenizer_class == "Qwen2TokenizerFast") &&
           path_exists(path("vocab.json")) && path_exists(path("merges.txt"));
  }

  bool has_bert_file() const {
    static constexpr std::string_view classes[] = {
        "",
        "BertTokenizer",
        "BertTokenizerFast",
        "DistilBertTokenizer",
        "DistilBertTokenizerFast",
        "ElectraTokenizer",
        "ElectraTokenizerFast",
        "MobileBertTokenizer",
        "MobileBertTokenizerFast"};
    return path_exists(path("vocab.txt")) &&
           std::find(
               std::begin(classes), std::end(classes), config_.tokenizer_class
           ) != std::end(classes);
  }

  [[noreturn]] void none_found() {
    if (model_type() == "moondream3") {
      needs_moondream_tokenizer("there is no tokenizer");
    }
    std::string detail;
    if (path_exists(path("vocab.json"))) {
      detail = fmt::format(
          "; vocab.json is read with merges.txt beside it, which is {}, and "
          "for the class Qwen2Tokenizer, but the class is {}",
          path_exists(path("merges.txt")) ? "there" : "missing",
          quote(config_.tokenizer_class)
      );
    }
    if (path_exists(path("vocab.txt"))) {
      detail += fmt::format(
          "; vocab.txt is read for BERT's classes, but the class is {}",
          quote(config_.tokenizer_class)
      );
    }
    fail(
        ErrorCode::not_found,
        fmt::format(
            "[tokenizer] {}: no tokenizer found; tried tokenizer.json, "
            "tokenizer.model, tiktoken.model, *.tiktoken, tokenizer.jsonl, "
            "vocab.json with merges.txt, vocab.txt{}",
            dir_,
            detail
        )
    );
  }

  const std::string& dir_;
  TokenizerConfig& config_;
  std::optional<std::string> model_type_;
};

}  // namespace

Parts read_tokenizer_directory(
    const std::string& model_dir, TokenizerConfig& config
) {
  return Search(model_dir, config).read();
}

}  // namespace mlxcel::tokenizer
