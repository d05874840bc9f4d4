#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/lines.h"
#include "mlxcel/core/utf8.h"
#include "mlxcel/tokenizer/files/file_formats.h"
#include "mlxcel/tokenizer/files/part_recipes.h"
#include "mlxcel/tokenizer/models/word_models.h"

namespace mlxcel::tokenizer {

namespace {

using Object = nlohmann::ordered_json;

constexpr uint64_t max_file = uint64_t{64} << 20;  // bytes

/// One token a line; the number of the line is its id. Of equal tokens the
/// last counts.
Vocab read_vocab(const std::string& path) {
  std::string text = read_file(path, max_file);
  if (find_invalid_utf8(text)) {
    fail(ErrorCode::invalid_input, fmt::format("[{}] not UTF-8", path));
  }
  Vocab vocab;
  LineReader lines(text);
  std::string_view line;
  for (int32_t id = 0; lines.next(line); ++id) {
    if (id > Vocab::max_id) {
      fail(ErrorCode::invalid_input, fmt::format("[{}] too many lines", path));
    }
    size_t last = line.find_last_not_of(" \t\r\v\f");
    if (last != std::string_view::npos) {
      vocab.add(line.substr(0, last + 1), id);
    }
  }
  vocab.build();
  return vocab;
}

/// The special tokens under the names that they have by default.
struct SpecialNames {
  std::string unk;
  std::string sep;
  std::string pad;
  std::string cls;
  std::string mask;

  explicit SpecialNames(const TokenizerConfig& config)
      : unk(name(config.unk_token, "[UNK]")),
        sep(name(config.sep_token, "[SEP]")),
        pad(name(config.pad_token, "[PAD]")),
        cls(name(config.cls_token, "[CLS]")),
        mask(name(config.mask_token, "[MASK]")) {}

 private:
  static std::string name(const std::string& given, const char* usual) {
    return given.empty() ? usual : given;
  }
};

std::vector<AddedToken> added_tokens(
    const SpecialNames& names, const TokenizerConfig& config, const Vocab& vocab
) {
  std::vector<AddedToken> tokens = config.added_tokens;
  std::set<std::string_view> known;
  for (const AddedToken& token : tokens) {
    known.insert(token.content);
  }
  for (const std::string& text :
       {names.unk, names.sep, names.pad, names.cls, names.mask}) {
    if (!known.contains(text) && vocab.find(text)) {
      AddedToken token;
      token.content = text;
      token.normalized = false;
      token.special = true;
      tokens.push_back(std::move(token));
    }
  }
  return tokens;
}

/// [CLS] text [SEP]
PostProcessor make_post_processor(
    const SpecialNames& names,
    const AddedTokens& tokens,
    const std::string& path
) {
  Object table;
  auto part = [&](const std::string& text, int type) {
    int32_t id = tokens.find(text);
    if (id < 0) {
      fail(
          ErrorCode::invalid_input,
          fmt::format("[{}] there is no token {}", path, quote(text))
      );
    }
    table[text] = {{"id", text}, {"ids", {id}}, {"tokens", {text}}};
    return Object{{"SpecialToken", {{"id", text}, {"type_id", type}}}};
  };
  auto text = [](const char* name, int type) {
    return Object{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  Object single =
      Object::array({part(names.cls, 0), text("A", 0), part(names.sep, 0)});
  Object pair = single;
  pair.push_back(text("B", 1));
  pair.push_back(part(names.sep, 1));
  Object json = {
      {"type", "TemplateProcessing"},
      {"single", single},
      {"pair", pair},
      {"special_tokens", table}};
  return PostProcessor(Json::from(std::move(json), path));
}

void check_options(const TokenizerConfig& config, const std::string& path) {
  auto refuse = [&](const char* option) {
    fail(
        ErrorCode::unsupported,
        fmt::format(
            "[{}] tokenizer_config.json: {} is not supported", path, option
        )
    );
  };
  if (!config.do_basic_tokenize.value_or(true)) {
    refuse("do_basic_tokenize false");
  }
  std::set<std::string> found;
  for (const AddedToken& token : config.added_tokens) {
    found.insert(token.content);
  }
  SpecialNames names(config);
  found.insert({names.unk, names.sep, names.pad, names.cls, names.mask});
  for (const std::string& token : config.never_split) {
    // Added tokens are never split anyway.
    if (!found.contains(token)) {
      refuse("never_split of other than special and added tokens");
    }
  }
}

}  // namespace

Parts read_bert_files(const std::string& path, const TokenizerConfig& config) {
  check_options(config, path);
  SpecialNames names(config);
  Object normalizer = {
      {"type", "BertNormalizer"},
      {"clean_text", true},
      {"handle_chinese_chars", config.tokenize_chinese_chars.value_or(true)},
      {"strip_accents", nullptr},
      {"lowercase", config.do_lower_case.value_or(true)}};
  if (config.strip_accents) {
    normalizer["strip_accents"] = *config.strip_accents;
  }
  Parts parts;
  parts.normalizer = normalizer_from(normalizer.dump());
  parts.pre_tokenizer = pre_tokenizer_from(R"({"type":"BertPreTokenizer"})");
  parts.decoder =
      decoder_from(R"({"type":"WordPiece","prefix":"##","cleanup":true})");
  WordPieceOptions options;
  options.unk_token = names.unk;
  Vocab vocab = read_vocab(path);
  parts.model = std::make_unique<WordPiece>(std::move(vocab), options);
  parts.added_tokens = AddedTokens(
      added_tokens(names, config, parts.model->vocab()),
      parts.model->vocab(),
      parts.normalizer.get()
  );
  parts.post_processor = make_post_processor(names, parts.added_tokens, path);
  return parts;
}

}  // namespace mlxcel::tokenizer
