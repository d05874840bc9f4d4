#include "mlxcel/weights/convert/gguf/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mlxcel/core/utf8.h"

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
    tokenizer.cls = id("cls", -1);
  }
  if (tokenizer.kind == Kind::word_piece || tokenizer.kind == Kind::unigram) {
    // The key of the separator is misspelt in the format.
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
                               .value_or(
                                   tokenizer.kind == Kind::sentencepiece ||
                                   tokenizer.kind == Kind::unigram
                               );
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
  if (model == "t5") {
    return Kind::unigram;
  }
  gguf.reject(
      "tokenizer.ggml.model",
      quote(model) +
          " is not supported, expected gpt2, llama, gemma4, bert or t5",
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

// The pieces of tokenizer.json stand at their ids, so that one which is never
// to be found can be left out at the end alone.
void read_unigram(const GgufFile& gguf, GgufTokenizer& tokenizer) {
  tokenizer.char_map = gguf.bytes("tokenizer.ggml.precompiled_charsmap");
  tokenizer.trims_spaces =
      gguf.find_bool("tokenizer.ggml.remove_extra_whitespaces").value_or(false);
  auto& types = tokenizer.types;
  while (!types.empty() && types.back() == TokenType::unused) {
    types.pop_back();
    tokenizer.tokens.pop_back();
    tokenizer.scores.pop_back();
  }
  auto unused = std::find(types.begin(), types.end(), TokenType::unused);
  if (unused != types.end()) {
    auto place = static_cast<size_t>(unused - types.begin());
    gguf.reject(
        fmt::format("{}[{}]", kTokens, place),
        quote(tokenizer.tokens[place]) +
            " is an unused piece, which tokenizer.json can't express",
        ErrorCode::unsupported
    );
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
    case Kind::unigram:
      read_scores(gguf, tokenizer);
      read_unigram(gguf, tokenizer);
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

}  // namespace mlxcel::convert
