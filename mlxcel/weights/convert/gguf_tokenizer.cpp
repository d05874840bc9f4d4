#include "mlxcel/weights/convert/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "mlxcel/core/utf8.h"
#include "mlxcel/weights/convert/json_text.h"

namespace mlxcel::convert {

namespace {

using Kind = GgufTokenizerKind;

constexpr const char* kTokens = "tokenizer.ggml.tokens";

// Texts that end a generation wherever they are tokens: the list of
// llama.cpp's src/llama-vocab.cpp (special_eog_ids), as far as it concerns
// the architectures that are converted.
constexpr const char* kStopTexts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "<|end_of_text|>",
    "<eos>",
};

using TokenIds = std::unordered_map<std::string_view, int64_t>;

// The tokens by text; a text that occurs twice is refused.
TokenIds index_tokens(
    const GgufFile& gguf, const std::vector<std::string>& tokens
) {
  TokenIds ids;
  ids.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!ids.emplace(tokens[i], static_cast<int64_t>(i)).second) {
      gguf.reject(
          fmt::format("{}[{}]", kTokens, i), quote(tokens[i]) + " occurs twice"
      );
    }
  }
  return ids;
}

void read_tokens(
    const GgufFile& gguf, int64_t vocab_size, GgufTokenizer& tokenizer
) {
  std::span<const std::string_view> texts = gguf.strings(kTokens);
  if (texts.empty()) {
    gguf.reject(kTokens, "missing");
  }
  if (texts.size() > static_cast<size_t>(vocab_size)) {
    gguf.reject(
        kTokens,
        fmt::format(
            "{} tokens, but token_embd.weight has {} rows",
            texts.size(),
            vocab_size
        )
    );
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    if (find_invalid_utf8(texts[i])) {
      gguf.reject(fmt::format("{}[{}]", kTokens, i), "not UTF-8");
    }
    // As llama.cpp names them.
    tokenizer.tokens.push_back(
        texts[i].empty() ? fmt::format("[EMPTY_{}]", i) : std::string(texts[i])
    );
  }
}

void read_types(const GgufFile& gguf, GgufTokenizer& tokenizer) {
  const char* key = "tokenizer.ggml.token_type";
  std::vector<int32_t> numbers = gguf.ints(key);
  size_t count = tokenizer.tokens.size();
  if (gguf.find(key) == nullptr) {
    tokenizer.types.assign(count, TokenType::normal);
    return;
  }
  if (numbers.size() != count) {
    gguf.reject(
        key, fmt::format("{} entries for {} tokens", numbers.size(), count)
    );
  }
  for (size_t i = 0; i < count; ++i) {
    if (numbers[i] < 1 || numbers[i] > 6) {
      gguf.reject(
          fmt::format("{}[{}]", key, i),
          fmt::format("expected 1 to 6, got {}", numbers[i])
      );
    }
    tokenizer.types.push_back(static_cast<TokenType>(numbers[i]));
  }
}

void read_special(
    const GgufFile& gguf, const TokenIds& ids, GgufTokenizer& tokenizer
) {
  auto most = static_cast<int64_t>(tokenizer.tokens.size()) - 1;
  auto id = [&](const char* name, int64_t fallback) -> std::optional<int64_t> {
    auto found =
        gguf.find_int(fmt::format("tokenizer.ggml.{}_token_id", name), 0, most);
    if (!found && fallback >= 0 && fallback <= most) {
      found = fallback;
    }
    return found;
  };
  bool sentencepiece = tokenizer.kind == Kind::sentencepiece;
  tokenizer.bos = id("bos", sentencepiece ? 1 : -1);
  tokenizer.eos = id("eos", sentencepiece ? 2 : -1);
  tokenizer.unk = id("unknown", sentencepiece ? 0 : -1);
  tokenizer.pad = id("padding", -1);
  if (tokenizer.kind == Kind::word_piece) {
    // The key of the separator is misspelt in the format.
    tokenizer.cls = id("cls", -1);
    tokenizer.sep = id("seperator", -1);
    tokenizer.mask = id("mask", -1);
  }

  auto mark = [&](std::optional<int64_t> token) {
    if (token) {
      tokenizer.types[static_cast<size_t>(*token)] = TokenType::control;
    }
  };
  auto stop = [&](std::optional<int64_t> token) {
    auto& stops = tokenizer.stops;
    if (token && std::find(stops.begin(), stops.end(), *token) == stops.end()) {
      stops.push_back(*token);
    }
    mark(token);
  };
  mark(tokenizer.bos);
  mark(tokenizer.pad);
  stop(tokenizer.eos);
  stop(id("eot", -1));
  stop(id("eom", -1));
  for (const char* text : kStopTexts) {
    auto found = ids.find(text);
    stop(found == ids.end() ? std::nullopt : std::optional(found->second));
  }
}

void read_switches(
    const GgufFile& gguf, bool bos_by_default, GgufTokenizer& tokenizer
) {
  tokenizer.add_bos = gguf.find_bool("tokenizer.ggml.add_bos_token")
                          .value_or(bos_by_default && tokenizer.bos);
  tokenizer.add_eos =
      gguf.find_bool("tokenizer.ggml.add_eos_token").value_or(false);
  tokenizer.space_prefix = gguf.find_bool("tokenizer.ggml.add_space_prefix")
                               .value_or(tokenizer.kind == Kind::sentencepiece);
  if (tokenizer.add_bos && !tokenizer.bos) {
    gguf.reject(
        "tokenizer.ggml.bos_token_id", "missing, but it is to be added"
    );
  }
  if (tokenizer.add_eos && !tokenizer.eos) {
    gguf.reject(
        "tokenizer.ggml.eos_token_id", "missing, but it is to be added"
    );
  }
}

bool is_special(TokenType type) {
  return type == TokenType::control || type == TokenType::unknown;
}

// llama.cpp's converter fills gaps in the vocabulary with such tokens.
bool is_padding(const GgufTokenizer& tokenizer, size_t i) {
  return tokenizer.types[i] == TokenType::unused &&
         tokenizer.tokens[i].starts_with("[PAD");
}

void append_added_tokens(std::string& out, const GgufTokenizer& tokenizer) {
  const char* separator = "\n";
  for (size_t i = 0; i < tokenizer.tokens.size(); ++i) {
    TokenType type = tokenizer.types[i];
    if (!is_special(type) && type != TokenType::user_defined) {
      continue;
    }
    out += fmt::format("{}    {{\"id\":{},\"content\":", separator, i);
    append_json(out, tokenizer.tokens[i]);
    out += fmt::format(
        ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
        "\"normalized\":false,\"special\":{}}}",
        is_special(type)
    );
    separator = ",\n";
  }
}

void append_vocabulary(std::string& out, const GgufTokenizer& tokenizer) {
  const char* separator = "\n";
  for (size_t i = 0; i < tokenizer.tokens.size(); ++i) {
    if (is_padding(tokenizer, i)) {
      continue;
    }
    out += separator;
    out += "      ";
    append_json(out, tokenizer.tokens[i]);
    out += fmt::format(": {}", i);
    separator = ",\n";
  }
}

void append_merge(
    std::string& out, std::string_view left, std::string_view right
) {
  out += out.back() == '[' ? "\n      [" : ",\n      [";
  append_json(out, left);
  out += ", ";
  append_json(out, right);
  out += ']';
}

// "left right" lines; both and their union must be tokens, as the tokenizers
// library demands.
void append_listed_merges(
    std::string& out,
    const GgufFile& gguf,
    const GgufTokenizer& tokenizer,
    const TokenIds& ids
) {
  for (size_t i = 0; i < tokenizer.merges.size(); ++i) {
    std::string_view merge = tokenizer.merges[i];
    size_t space = merge.find(' ', 1);
    std::string_view left = merge.substr(0, space);
    std::string_view right =
        space == std::string_view::npos ? "" : merge.substr(space + 1);
    std::string whole = std::string(left) + std::string(right);
    if (right.empty() || !ids.contains(left) || !ids.contains(right) ||
        !ids.contains(whole)) {
      gguf.reject(
          fmt::format("tokenizer.ggml.merges[{}]", i),
          quote(merge) + " does not join two tokens to a third"
      );
    }
    append_merge(out, left, right);
  }
}

struct Merge {
  float score;
  int64_t whole;
  int64_t left;
  int64_t right;
};

// Every way to join two tokens to a third, in the order of the third's score:
// transformers, tokenization_utils_base.py, generate_merges.
std::vector<Merge> derive_merges(
    const GgufTokenizer& tokenizer, const TokenIds& ids
) {
  auto normal = [&](std::string_view text) -> int64_t {
    auto found = ids.find(text);
    bool usable = found != ids.end() &&
                  tokenizer.types[static_cast<size_t>(found->second)] ==
                      TokenType::normal;
    return usable ? found->second : -1;
  };
  std::vector<Merge> merges;
  for (size_t i = 0; i < tokenizer.tokens.size(); ++i) {
    if (tokenizer.types[i] != TokenType::normal) {
      continue;
    }
    std::string_view text = tokenizer.tokens[i];
    for (size_t cut = 1; cut < text.size(); ++cut) {
      if ((static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) {
        continue;  // inside a character
      }
      int64_t left = normal(text.substr(0, cut));
      int64_t right = left < 0 ? -1 : normal(text.substr(cut));
      if (right >= 0) {
        merges.push_back(
            {tokenizer.scores[i], static_cast<int64_t>(i), left, right}
        );
      }
    }
  }
  std::sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
    if (a.score != b.score) {
      return a.score > b.score;
    }
    return std::tie(a.whole, a.left, a.right) <
           std::tie(b.whole, b.left, b.right);
  });
  return merges;
}

// Puts bos and eos, or cls and sep, around a sequence; "null" if neither is
// added.
std::string post_processor_json(const GgufTokenizer& tokenizer) {
  bool words = tokenizer.kind == Kind::word_piece;
  std::optional<int64_t> front = words ? tokenizer.cls : tokenizer.bos;
  std::optional<int64_t> back = words ? tokenizer.sep : tokenizer.eos;
  bool in_front = words ? front.has_value() : tokenizer.add_bos;
  bool behind = words ? back.has_value() : tokenizer.add_eos;
  if (!in_front && !behind) {
    return "null";
  }
  nlohmann::ordered_json special = nlohmann::ordered_json::object();
  auto piece = [&](std::optional<int64_t> id, int type) {
    const std::string& text = tokenizer.tokens[static_cast<size_t>(*id)];
    special[text] = {{"id", text}, {"ids", {*id}}, {"tokens", {text}}};
    return nlohmann::ordered_json{
        {"SpecialToken", {{"id", text}, {"type_id", type}}}};
  };
  auto sequence = [&](const char* name, int type) {
    nlohmann::ordered_json parts = nlohmann::ordered_json::array();
    // The second text of a pair of word pieces shares the separator.
    if (in_front && !(words && type == 1)) {
      parts.push_back(piece(front, type));
    }
    parts.push_back({{"Sequence", {{"id", name}, {"type_id", type}}}});
    if (behind) {
      parts.push_back(piece(back, type));
    }
    return parts;
  };
  nlohmann::ordered_json single = sequence("A", 0);
  nlohmann::ordered_json pair = single;
  for (auto& part : sequence("B", 1)) {
    pair.push_back(part);
  }
  return nlohmann::ordered_json{
      {"type", "TemplateProcessing"},
      {"single", single},
      {"pair", pair},
      {"special_tokens", special},
  }
      .dump();
}

struct Parts {
  std::string normalizer;
  std::string pre_tokenizer;
  std::string decoder;
  std::string model_head;  // of the model, up to its vocabulary
};

std::string unknown_token(const GgufTokenizer& tokenizer) {
  std::string text;
  if (tokenizer.unk) {
    append_json(text, tokenizer.tokens[static_cast<size_t>(*tokenizer.unk)]);
  }
  return text.empty() ? "null" : text;
}

constexpr const char* kBpeHead =
    R"("type":"BPE","dropout":null,"continuing_subword_prefix":null,)"
    R"("end_of_word_suffix":null,)";

Parts byte_level_parts(const GgufTokenizer& tokenizer) {
  PreTokenizer pre = *pre_tokenizer(tokenizer.pre);
  return {
      .normalizer = pre.normalizer,
      .pre_tokenizer = pre.json,
      .decoder = R"({"type":"ByteLevel","add_prefix_space":true,)"
                 R"("trim_offsets":true,"use_regex":true})",
      .model_head = fmt::format(
          R"({}"unk_token":null,"fuse_unk":false,"byte_fallback":false,)"
          R"("ignore_merges":{})",
          kBpeHead,
          pre.ignore_merges
      ),
  };
}

// BERT's, cased if the vocabulary is (transformers, convert_slow_tokenizer.py,
// BertConverter).
bool is_cased(const GgufTokenizer& tokenizer) {
  for (size_t i = 0; i < tokenizer.tokens.size(); ++i) {
    if (tokenizer.types[i] != TokenType::normal) {
      continue;
    }
    for (char c : tokenizer.tokens[i]) {
      if (c >= 'A' && c <= 'Z') {
        return true;
      }
    }
  }
  return false;
}

Parts word_piece_parts(const GgufTokenizer& tokenizer) {
  return {
      .normalizer = fmt::format(
          R"({{"type":"BertNormalizer","clean_text":true,)"
          R"("handle_chinese_chars":true,"strip_accents":null,)"
          R"("lowercase":{}}})",
          !is_cased(tokenizer)
      ),
      .pre_tokenizer = R"({"type":"BertPreTokenizer"})",
      .decoder = R"({"type":"WordPiece","prefix":"##","cleanup":true})",
      .model_head = fmt::format(
          R"("type":"WordPiece","unk_token":{},)"
          R"("continuing_subword_prefix":"##","max_input_chars_per_word":100)",
          unknown_token(tokenizer)
      ),
  };
}

// As transformers writes Llama's tokenizers (convert_slow_tokenizer.py,
// LlamaConverter, GemmaConverter).
Parts sentencepiece_parts(const GgufTokenizer& tokenizer) {
  const char* replace = R"({"type":"Replace","pattern":{"String":" "},)"
                        R"("content":"▁"})";
  const char* prepend = R"({"type":"Prepend","prepend":"▁"},)";
  bool bytes =
      std::find(
          tokenizer.types.begin(), tokenizer.types.end(), TokenType::byte
      ) != tokenizer.types.end();
  return {
      .normalizer = tokenizer.space_prefix
                        ? fmt::format(
                              R"({{"type":"Sequence","normalizers":[{}{}]}})",
                              prepend,
                              replace
                          )
                        : replace,
      .pre_tokenizer = "null",
      .decoder = fmt::format(
          R"({{"type":"Sequence","decoders":[{{"type":"Replace",)"
          R"("pattern":{{"String":"▁"}},"content":" "}},)"
          R"({{"type":"ByteFallback"}},{{"type":"Fuse"}}{}]}})",
          tokenizer.space_prefix
              ? R"(,{"type":"Strip","content":" ","start":1,"stop":0})"
              : ""
      ),
      .model_head = fmt::format(
          R"({}"unk_token":{},"fuse_unk":true,"byte_fallback":{},)"
          R"("ignore_merges":false)",
          kBpeHead,
          unknown_token(tokenizer),
          bytes
      ),
  };
}

Kind read_kind(const GgufFile& gguf) {
  std::string model = gguf.need_string("tokenizer.ggml.model");
  if (model == "gpt2") {
    return Kind::byte_level;
  }
  if (model == "llama") {
    return Kind::sentencepiece;
  }
  if (model == "gemma4") {
    return Kind::spaced_bpe;
  }
  if (model == "bert") {
    return Kind::word_piece;
  }
  gguf.reject(
      "tokenizer.ggml.model",
      quote(model) + " is not supported, expected gpt2, llama, gemma4 or bert",
      ErrorCode::unsupported
  );
}

void read_merges(const GgufFile& gguf, GgufTokenizer& tokenizer) {
  tokenizer.merges = gguf.strings("tokenizer.ggml.merges");
  if (gguf.find("tokenizer.ggml.merges") == nullptr) {
    gguf.reject("tokenizer.ggml.merges", "missing");
  }
}

void read_scores(const GgufFile& gguf, GgufTokenizer& tokenizer) {
  const char* key = "tokenizer.ggml.scores";
  tokenizer.scores = gguf.floats(key);
  if (tokenizer.scores.size() != tokenizer.tokens.size()) {
    gguf.reject(
        key,
        fmt::format(
            "{} scores for {} tokens",
            tokenizer.scores.size(),
            tokenizer.tokens.size()
        )
    );
  }
  for (size_t i = 0; i < tokenizer.scores.size(); ++i) {
    if (!std::isfinite(tokenizer.scores[i])) {
      gguf.reject(fmt::format("{}[{}]", key, i), "not finite");
    }
  }
}

// What decides how text becomes tokens. Whether a BOS is added by default.
bool read_rules(const GgufFile& gguf, GgufTokenizer& tokenizer) {
  switch (tokenizer.kind) {
    case Kind::sentencepiece:
      read_scores(gguf, tokenizer);
      return true;
    case Kind::spaced_bpe:
      read_merges(gguf, tokenizer);
      return true;
    case Kind::word_piece:
      return false;
    case Kind::byte_level:
      break;
  }
  tokenizer.pre = gguf.need_string("tokenizer.ggml.pre");
  auto pre = pre_tokenizer(tokenizer.pre);
  if (!pre) {
    gguf.reject(
        "tokenizer.ggml.pre",
        quote(tokenizer.pre) + " is not a known pre-tokenizer",
        ErrorCode::unsupported
    );
  }
  read_merges(gguf, tokenizer);
  return pre->add_bos;
}

Parts make_parts(const GgufTokenizer& tokenizer) {
  switch (tokenizer.kind) {
    case Kind::byte_level:
      return byte_level_parts(tokenizer);
    case Kind::word_piece:
      return word_piece_parts(tokenizer);
    default:
      return sentencepiece_parts(tokenizer);
  }
}

void append_merges(
    std::string& out, const GgufFile& gguf, const GgufTokenizer& tokenizer
) {
  TokenIds ids = index_tokens(gguf, tokenizer.tokens);
  if (tokenizer.kind != Kind::sentencepiece) {
    append_listed_merges(out, gguf, tokenizer, ids);
    return;
  }
  for (const Merge& merge : derive_merges(tokenizer, ids)) {
    append_merge(
        out,
        tokenizer.tokens[static_cast<size_t>(merge.left)],
        tokenizer.tokens[static_cast<size_t>(merge.right)]
    );
  }
}

// The tokens of BERT's vocab.txt: GGUF marks the starts of words instead of
// what continues them (llama.cpp, convert_hf_to_gguf.py, BertModel).
void restore_word_pieces(GgufTokenizer& tokenizer) {
  constexpr std::string_view mark = "▁";
  for (size_t i = 0; i < tokenizer.tokens.size(); ++i) {
    std::string& token = tokenizer.tokens[i];
    if (token.starts_with(mark)) {
      token.erase(0, mark.size());
    } else if (tokenizer.types[i] == TokenType::normal) {
      token.insert(0, "##");
    }
  }
}

}  // namespace

GgufTokenizer read_tokenizer(const GgufFile& gguf, int64_t vocab_size) {
  GgufTokenizer tokenizer{};
  tokenizer.kind = read_kind(gguf);
  read_tokens(gguf, vocab_size, tokenizer);
  read_types(gguf, tokenizer);
  if (tokenizer.kind == Kind::word_piece) {
    restore_word_pieces(tokenizer);
  }
  bool bos_by_default = read_rules(gguf, tokenizer);
  read_special(gguf, index_tokens(gguf, tokenizer.tokens), tokenizer);
  read_switches(gguf, bos_by_default, tokenizer);
  tokenizer.chat_template =
      gguf.find_string("tokenizer.chat_template").value_or("");
  if (find_invalid_utf8(tokenizer.chat_template)) {
    gguf.reject("tokenizer.chat_template", "not UTF-8");
  }
  return tokenizer;
}

std::string tokenizer_json(
    const GgufFile& gguf, const GgufTokenizer& tokenizer
) {
  Parts parts = make_parts(tokenizer);
  std::string out =
      "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n"
      "  \"padding\": null,\n  \"added_tokens\": [";
  append_added_tokens(out, tokenizer);
  out += "\n  ],\n  \"normalizer\": " + parts.normalizer;
  out += ",\n  \"pre_tokenizer\": " + parts.pre_tokenizer;
  out += ",\n  \"post_processor\": " + post_processor_json(tokenizer);
  out += ",\n  \"decoder\": " + parts.decoder;
  out += ",\n  \"model\": {" + parts.model_head + ",\n    \"vocab\": {";
  append_vocabulary(out, tokenizer);
  out += "\n    }";
  if (tokenizer.kind != Kind::word_piece) {
    out += ",\n    \"merges\": [";
    append_merges(out, gguf, tokenizer);
    out += "\n    ]";
  }
  out += "\n  }\n}\n";
  return out;
}

nlohmann::ordered_json tokenizer_config(
    const GgufTokenizer& tokenizer, int64_t context
) {
  nlohmann::ordered_json json;
  bool words = tokenizer.kind == Kind::word_piece;
  json["tokenizer_class"] = words ? "BertTokenizer" : "PreTrainedTokenizerFast";
  auto put = [&](const char* name, std::optional<int64_t> id) {
    if (id) {
      json[name] = tokenizer.tokens[static_cast<size_t>(*id)];
    }
  };
  put("bos_token", tokenizer.bos);
  put("eos_token", tokenizer.eos);
  put("unk_token", tokenizer.unk);
  put("pad_token", tokenizer.pad);
  put("cls_token", tokenizer.cls);
  put("sep_token", tokenizer.sep);
  put("mask_token", tokenizer.mask);
  if (words) {
    json["do_lower_case"] = !is_cased(tokenizer);
  } else {
    json["add_bos_token"] = tokenizer.add_bos;
    json["add_eos_token"] = tokenizer.add_eos;
  }
  json["clean_up_tokenization_spaces"] = false;
  json["model_max_length"] = context;
  if (!tokenizer.chat_template.empty()) {
    json["chat_template"] = tokenizer.chat_template;
  }
  return json;
}

nlohmann::ordered_json generation_config(const GgufTokenizer& tokenizer) {
  auto json = nlohmann::ordered_json::object();
  if (tokenizer.bos) {
    json["bos_token_id"] = *tokenizer.bos;
  }
  if (tokenizer.stops.size() == 1) {
    json["eos_token_id"] = tokenizer.stops[0];
  } else if (!tokenizer.stops.empty()) {
    json["eos_token_id"] = tokenizer.stops;
  }
  if (tokenizer.pad) {
    json["pad_token_id"] = *tokenizer.pad;
  }
  return json;
}

}  // namespace mlxcel::convert
