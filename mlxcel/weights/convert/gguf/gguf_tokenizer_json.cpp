#include "mlxcel/weights/convert/gguf/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "mlxcel/core/base64.h"
#include "mlxcel/weights/convert/gguf/json_text.h"

namespace mlxcel::convert {

namespace {

using Kind = GgufTokenizerKind;

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

// Pieces with their scores, in the order of their ids.
void append_pieces(std::string& out, const GgufTokenizer& tokenizer) {
  for (size_t i = 0; i < tokenizer.tokens.size(); ++i) {
    out += i == 0 ? "\n      [" : ",\n      [";
    append_json(out, tokenizer.tokens[i]);
    out += fmt::format(",{}]", static_cast<double>(tokenizer.scores[i]));
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
  if (tokenizer.kind == Kind::unigram && tokenizer.sep && in_front && behind) {
    // <s> A </s> </s> B </s> (transformers, convert_slow_tokenizer.py,
    // XLMRobertaConverter).
    front = tokenizer.sep;
  }
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

bool has_bytes(const GgufTokenizer& tokenizer) {
  const auto& types = tokenizer.types;
  return std::find(types.begin(), types.end(), TokenType::byte) != types.end();
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
          has_bytes(tokenizer)
      ),
  };
}

// As transformers writes them (convert_slow_tokenizer.py, SpmConverter).
Parts unigram_parts(const GgufTokenizer& tokenizer) {
  std::string steps;
  if (!tokenizer.char_map.empty()) {
    steps = fmt::format(
        R"({{"type":"Precompiled","precompiled_charsmap":"{}"}})",
        encode_base64(tokenizer.char_map)
    );
  }
  if (tokenizer.trims_spaces) {
    steps += steps.empty() ? "" : ",";
    steps += R"({"type":"Strip","strip_left":false,"strip_right":true},)"
             R"({"type":"Replace","pattern":{"Regex":" {2,}"},"content":"▁"})";
  }
  std::string metaspace = fmt::format(
      R"({{"type":"Metaspace","replacement":"▁","prepend_scheme":"{}",)"
      R"("split":true}})",
      tokenizer.space_prefix ? "always" : "never"
  );
  return {
      .normalizer =
          fmt::format(R"({{"type":"Sequence","normalizers":[{}]}})", steps),
      .pre_tokenizer = metaspace,
      .decoder = metaspace,
      .model_head = fmt::format(
          R"("type":"Unigram","unk_id":{},"byte_fallback":{})",
          tokenizer.unk ? std::to_string(*tokenizer.unk) : "null",
          has_bytes(tokenizer)
      ),
  };
}

Parts make_parts(const GgufTokenizer& tokenizer) {
  switch (tokenizer.kind) {
    case Kind::byte_level:
      return byte_level_parts(tokenizer);
    case Kind::word_piece:
      return word_piece_parts(tokenizer);
    case Kind::unigram:
      return unigram_parts(tokenizer);
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

}  // namespace

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
  bool unigram = tokenizer.kind == Kind::unigram;
  out += ",\n  \"model\": {" + parts.model_head + ",\n    \"vocab\": ";
  out += unigram ? '[' : '{';
  unigram ? append_pieces(out, tokenizer) : append_vocabulary(out, tokenizer);
  out += "\n    ";
  out += unigram ? ']' : '}';
  if (!unigram && tokenizer.kind != Kind::word_piece) {
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
