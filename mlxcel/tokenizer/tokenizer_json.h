#pragma once

#include <memory>
#include <optional>
#include <string>

#include "mlxcel/tokenizer/added_tokens.h"
#include "mlxcel/tokenizer/decoder.h"
#include "mlxcel/tokenizer/limits.h"
#include "mlxcel/tokenizer/model.h"
#include "mlxcel/tokenizer/normalizer.h"
#include "mlxcel/tokenizer/post_processor.h"
#include "mlxcel/tokenizer/pre_tokenizer.h"
#include "mlxcel/tokenizer/text_chunks.h"

namespace mlxcel::tokenizer {

/// What a tokenizer is made of, whatever file it comes from.
struct Parts {
  std::optional<ChunkLimits> chunks;       // of a text, encoded one by one
  std::unique_ptr<Normalizer> normalizer;  // null: none
  PreTokenizer pre_tokenizer;
  std::unique_ptr<Model> model;
  AddedTokens added_tokens;
  PostProcessor post_processor;
  Limits limits;
  Decoder decoder;
};

/// Reads a tokenizer.json file (the format of the `tokenizers` library,
/// version 1.0). Throws Error(io | invalid_input | unsupported) naming the file
/// and the field.
Parts read_tokenizer_json(const std::string& path);

}  // namespace mlxcel::tokenizer
