#pragma once

#include <string>

#include "mlxcel/tokenizer/parts.h"
#include "mlxcel/tokenizer/tokenizer_config.h"

namespace mlxcel::tokenizer {

/// Readers of the formats beside tokenizer.json. All throw
/// Error(io | invalid_input | unsupported) naming the file and the place.

/// vocab.json and merges.txt of a directory: byte-level BPE as in Qwen2
/// (transformers, tokenization_qwen2.py). Ids must be 0, 1, 2 ... and added
/// tokens follow them without gaps.
Parts read_qwen2_files(
    const std::string& model_dir, const TokenizerConfig& config
);

/// Which names and pattern belong to a table of ranks, since the file holds
/// neither.
enum class TiktokenFamily { kimi, qwen, hunyuan };

/// Lines of `base64 rank`: byte pairs merge in the order of the rank of what
/// they make (tiktoken, src/lib.rs, byte_pair_merge).
Parts read_tiktoken(
    const std::string& path,
    const TokenizerConfig& config,
    TiktokenFamily family
);

/// tokenizer.model: a model of sentencepiece, unigram or BPE. A BOS comes in
/// front where the configuration has add_bos_token, an EOS behind where it
/// has add_eos_token.
Parts read_sentencepiece(
    const std::string& path, const TokenizerConfig& config
);

/// tokenizer.jsonl of PLaMo: lines of [token, score, kind], the number of a
/// line is the id. Ids 0 to 3 are unk, bos, eos and pad.
Parts read_plamo(const std::string& path, const TokenizerConfig& config);

/// vocab.txt: word pieces as in BERT (transformers, tokenization_bert.py).
Parts read_bert_files(const std::string& path, const TokenizerConfig& config);

}  // namespace mlxcel::tokenizer
