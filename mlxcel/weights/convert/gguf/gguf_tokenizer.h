#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mlxcel/weights/convert/gguf/gguf.h"

namespace mlxcel::convert {

/// Kinds of token, with the numbers of tokenizer.ggml.token_type.
enum class TokenType : int32_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

/// Kinds of tokenizer, by tokenizer.ggml.model.
enum class GgufTokenizerKind {
  byte_level,     // gpt2: byte-level BPE
  sentencepiece,  // llama: BPE by the scores of pieces
  spaced_bpe,     // gemma4: BPE with merges on text whose spaces are marked
  word_piece,     // bert
  unigram,        // t5: the likeliest pieces
};

/// What a GGUF file says about its tokenizer. Views point into the file.
struct GgufTokenizer {
  GgufTokenizerKind kind;
  std::string pre;  // tokenizer.ggml.pre, byte-level only
  std::vector<std::string> tokens;
  std::vector<TokenType> types;
  std::vector<float> scores;                 // sentencepiece and unigram
  std::span<const std::string_view> merges;  // byte_level and spaced_bpe
  std::string_view char_map;                 // unigram: the normalizer's
  bool trims_spaces;                         // unigram
  std::optional<int64_t> bos;
  std::optional<int64_t> eos;
  std::optional<int64_t> unk;
  std::optional<int64_t> pad;
  std::optional<int64_t> cls;  // word_piece
  std::optional<int64_t> sep;  // word_piece and unigram, as the next
  std::optional<int64_t> mask;
  std::vector<int64_t> stops;  // ids that end a generation, eos first
  bool add_bos;
  bool add_eos;
  bool space_prefix;  // sentencepiece and unigram
  std::string chat_template;
};

/// Reads and checks the tokenizer.ggml.* metadata. Defaults are llama.cpp's
/// (src/llama-vocab.cpp). `vocab_size`: the most tokens there may be. Throws
/// Error naming the file and the key.
GgufTokenizer read_tokenizer(const GgufFile& gguf, int64_t vocab_size);

using TokenIds = std::unordered_map<std::string_view, int64_t>;
/// The tokens by text. Throws Error for a text that occurs twice.
TokenIds index_tokens(
    const GgufFile& gguf, const std::vector<std::string>& tokens
);

/// tokenizer.json as the tokenizers library reads it.
std::string tokenizer_json(
    const GgufFile& gguf, const GgufTokenizer& tokenizer
);
nlohmann::ordered_json tokenizer_config(
    const GgufTokenizer& tokenizer, int64_t context
);
nlohmann::ordered_json generation_config(const GgufTokenizer& tokenizer);

/// How text is cut before byte-level BPE, for one tokenizer.ggml.pre.
struct PreTokenizer {
  std::string json;        // the pre_tokenizer of tokenizer.json
  std::string normalizer;  // its normalizer, "null" for none
  bool ignore_merges;
  bool add_bos;  // unless the file says otherwise
};
/// Empty if `name` isn't known.
std::optional<PreTokenizer> pre_tokenizer(std::string_view name);

}  // namespace mlxcel::convert
